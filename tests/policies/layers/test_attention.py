from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from srlhpc.policies.layers.attention import MaskedSelfAttention, attention_in_parts, masked_mean

ROWS, ENTITIES, WIDTH, HEADS = 6, 5, 8, 2


def attention() -> MaskedSelfAttention:
    torch.manual_seed(0)
    made = MaskedSelfAttention(WIDTH, HEADS)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter += 0.3 * torch.randn(parameter.shape)
    return made


def entities() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    mask = torch.rand(ROWS, ENTITIES, generator=generator) < 0.6
    mask[0], mask[1] = True, False
    return torch.randn(ROWS, ENTITIES, WIDTH, generator=generator), mask


def by_definition(made: MaskedSelfAttention, x: Tensor, mask: Tensor) -> Tensor:
    """Entity by entity and head by head; masked keys get no weight."""
    normed = made.norm_in(x)
    q, k, v = made.queries_keys_values(normed).split(WIDTH, dim=-1)
    size = WIDTH // HEADS
    attended = torch.zeros_like(x)
    for n in range(ROWS):
        seen = [j for j in range(ENTITIES) if mask[n, j]]
        for i in range(ENTITIES):
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                if seen:
                    scores = torch.stack([q[n, i, part] @ k[n, j, part] / math.sqrt(size) for j in seen])
                    attended[n, i, part] = sum(w * v[n, j, part] for w, j in zip(scores.softmax(0), seen, strict=True))
    return functional.layer_norm(x + made.out(attended), (WIDTH,), made.norm_out.weight, made.norm_out.bias)


def test_attention_equals_the_sum_over_unmasked_entities() -> None:
    made, (x, mask) = attention(), entities()
    torch.testing.assert_close(made(x, mask), by_definition(made, x, mask))


def test_attention_permutes_with_its_entities() -> None:
    made, (x, mask) = attention(), entities()
    order = torch.randperm(ENTITIES, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(made(x[:, order], mask[:, order]), made(x, mask)[:, order])


def test_a_masked_entity_changes_no_other() -> None:
    made, (x, mask) = attention(), entities()
    changed = torch.where(mask.unsqueeze(-1), x, x + 100)
    assert torch.equal(made(changed, mask)[mask], made(x, mask)[mask])


def test_more_padding_changes_nothing() -> None:
    made, (x, mask) = attention(), entities()
    padded, more = functional.pad(x, (0, 0, 0, 3)), functional.pad(mask, (0, 3))
    torch.testing.assert_close(made(padded, more)[:, :ENTITIES], made(x, mask))


def test_attention_to_nothing_is_zero_with_finite_gradients() -> None:
    made, (x, _) = attention(), entities()
    x.requires_grad_()
    with torch.no_grad():
        made.out.bias.zero_()
    out = made(x, torch.zeros(ROWS, ENTITIES, dtype=torch.bool))
    torch.testing.assert_close(out, made.norm_out(x))
    out.square().sum().backward()
    gradients = [x.grad, *(parameter.grad for parameter in made.parameters())]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_mean_is_that_of_the_unmasked_entities() -> None:
    x, mask = entities()
    expected = [x[n][mask[n]].mean(0).tolist() if mask[n].any() else [0.0] * WIDTH for n in range(ROWS)]
    torch.testing.assert_close(masked_mean(x, mask), torch.tensor(expected), rtol=1e-4, atol=1e-4)


def test_mean_of_nothing_is_exactly_zero() -> None:
    x, mask = entities()
    assert masked_mean(x, mask)[1].tolist() == [0.0] * WIDTH


@pytest.mark.parametrize("parts", [1, 2, 6])
def test_rows_are_independent(parts: int) -> None:
    made, (x, mask) = attention(), entities()
    split = [made(rows, masks) for rows, masks in zip(x.chunk(parts), mask.chunk(parts), strict=True)]
    torch.testing.assert_close(torch.cat(split), made(x, mask))


@pytest.mark.parametrize("rows", [1, 4, 6, 100])
def test_attention_in_parts_is_that_of_all_rows_at_once(rows: int) -> None:
    q, k, v = torch.randn(3, ROWS, HEADS, ENTITIES, 4)
    mask = entities()[1][:, None, None]
    whole = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(attention_in_parts(q, k, v, mask, rows=rows), whole)
