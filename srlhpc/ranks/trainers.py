"""Makes trainers from the plan. Whoever only acts needs nothing of it (ranks/serving.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from srlhpc.algorithms.algorithm import Algorithm, Context
from srlhpc.algorithms.own_turns import OwnTurnsRule
from srlhpc.comm.channel import Stream
from srlhpc.comm.parameters import (
    PULL_LAYOUT,
    ParameterSource,
    parameter_layout,
)
from srlhpc.comm.process_group import join_trainers
from srlhpc.data.epoch_draws import EpochDraws
from srlhpc.data.recorded import read_episodes
from srlhpc.errors import UserError
from srlhpc.import_path import load_module
from srlhpc.plan.exploration import columns
from srlhpc.plan.lag_limits import max_policy_lag, needs_grants, oldest_trained
from srlhpc.plan.layouts import block_layout, policy_shapes, recorded_layout, window_shape, windows_layout
from srlhpc.plan.plan import RolePlan
from srlhpc.plan.replay_sizes import draw_of, windows_ahead
from srlhpc.plan.seeds import seed_of
from srlhpc.plan.sizes import batch_blocks, block_fragments, trainer_arrays
from srlhpc.policies.policy import Policy, vector_size
from srlhpc.ranks.context import RankContext
from srlhpc.ranks.devices import autocast_dtype, device_of
from srlhpc.ranks.policies import build_policy, build_trained, seed_parameters
from srlhpc.ranks.torch_precision import enable_cudnn_benchmark
from srlhpc.roles.checkpoint_parts import PartSender, slots_of
from srlhpc.roles.training.batch_source import BatchSource
from srlhpc.roles.training.batches import Batches
from srlhpc.roles.training.block_queue import BlockQueue
from srlhpc.roles.training.checkpoint_part import Counters, checkpoint_part, load_part, part_tensors
from srlhpc.roles.training.copy_stream import PartCopy, copy_stream_to
from srlhpc.roles.training.drawn_windows import DrawnWindows, Shard
from srlhpc.roles.training.grants import LagLimiter
from srlhpc.roles.training.recorded_batches import RecordedBatches
from srlhpc.roles.training.staging import Staging
from srlhpc.roles.training.trainer import Trainer, TrainerSettings


def build_trainer(context: RankContext, role: RolePlan) -> Trainer:
    return Trainers(context).trainer(role)


class Trainers:
    """The trainers of one rank. Make them before those who act, who read the context's `sources` directly."""

    def __init__(self, context: RankContext) -> None:
        self._context = context
        self._plan, self._wiring, self._transport = context.plan, context.wiring, context.transport
        self._world, self._restored, self._sources = context.world, context.restored, context.sources

    def _source(self, name: str, trainer: RolePlan, size: int) -> ParameterSource:
        plan = self._plan
        remote = [role for role in plan.subscribers(name) if role.rank != trainer.rank]
        links = [plan.link(Stream.PULLS, role, trainer, 0, name) for role in remote]
        pulls = [self._transport.inbox(links, PULL_LAYOUT)] if links else []
        outboxes = {
            role.address: self._transport.outbox(
                plan.link(Stream.PARAMETERS, trainer, role, 0, name),
                parameter_layout(size),
                # A subscriber pulls again only when it has the answer.
                slots=1,
                synchronous=False,
            )
            for role in remote
        }
        self._sources[name] = ParameterSource(size, pulls, outboxes)
        return self._sources[name]

    def trainer(self, role: RolePlan) -> Trainer:
        plan, name = self._plan, role.policy or ""
        spec = plan.spec.policies[name]
        torch.set_num_threads(plan.spec.trainers.threads)
        device = device_of(plan, plan.spec.trainers.device)
        serves = any(r.name == "policy_server" for r in plan.ranks[role.rank].roles)
        if not serves and not policy_shapes(plan, name).state:
            enable_cudnn_benchmark(device)  # all minibatches are of one size
        policy = build_policy(plan, name, self._context.paths).to(device)
        trained = build_trained(plan, name, policy).to(device)
        reducer = join_trainers(self._world, [t.rank for t in plan.trainers(name)], device)
        seed = seed_of(plan.spec.seed, "trainer", *map(ord, name), role.index)
        autocast = autocast_dtype(self._context, device)
        together = policy_shapes(plan, name).joint_agents or 1
        arrays = trainer_arrays(plan, name)
        context = Context(reducer, device, autocast, seed, columns(plan, name), together, arrays)
        seed_parameters(plan, name, "rule")
        algorithm: Algorithm = load_module(spec.algorithm.kind, "srlhpc.algorithms").build(
            spec.algorithm, trained, context
        )
        # Recorded episodes are sequences of turns already.
        if plan.kind_of(name).takes_turns and spec.episodes is None:
            algorithm = OwnTurnsRule(algorithm)
        counters = Counters()
        if self._restored is not None:
            counters = load_part(self._part(name), policy, algorithm)
        first = role.index == 0
        batches = self._batch_source(role, counters, device)
        return Trainer(
            role.label,
            self._settings(name),
            policy,
            algorithm,
            reducer,
            batches,
            publisher=self._source(name, role, vector_size(policy)) if first else None,
            parts=self._part_sender(role, policy, algorithm) if first else None,
            part_copy=self._part_copy(policy, algorithm, device) if first else None,
            counters=counters,
        )

    def _batch_source(self, role: RolePlan, counters: Counters, device: torch.device) -> BatchSource:
        name = role.policy or ""
        if self._plan.spec.policies[name].episodes is not None:
            return self._recorded_batches(role, counters, device)
        make = self._drawn_windows if self._plan.replays(name) else self._block_queue
        return make(role, counters, device)

    def _recorded_batches(self, role: RolePlan, counters: Counters, device: torch.device) -> BatchSource:
        plan, name = self._plan, role.policy or ""
        spec, batch = plan.spec.policies[name].episodes, plan.spec.policies[name].batch
        assert spec is not None
        episodes = read_episodes(spec.files, spec.policy, name, plan.kind_of(name))
        layout, stream = recorded_layout(plan, name), copy_stream_to(device)
        first, second = (Staging(layout, 1, device, stream) for _ in range(2))
        seed = seed_of(plan.spec.seed, "episodes", *map(ord, name))
        return RecordedBatches(
            episodes,
            (first, second),
            EpochDraws(episodes.num_rows, batch.fragment_steps, seed),
            counters,
            place=role.index,
            trainers=len(plan.trainers(name)),
            fragments=batch.fragments,
            records=batch.burn_in_steps + batch.fragment_steps,
            burn_in=batch.burn_in_steps,
            prefetch=plan.spec.trainers.prefetch,
        )

    def _block_queue(self, role: RolePlan, counters: Counters, device: torch.device) -> BatchSource:
        plan, name = self._plan, role.policy or ""
        return BlockQueue(
            self._wiring.blocks(role),
            self._batches(name, device),
            self._lag_limiter(role) if needs_grants(plan, name) else None,
            counters,
            trainers=len(plan.trainers(name)),
            feeders={feeder.actor.address for feeder in plan.feeders(role)},
            burn_in=plan.spec.policies[name].batch.burn_in_steps,
            prefetch=plan.spec.trainers.prefetch,
        )

    def _drawn_windows(self, role: RolePlan, counters: Counters, device: torch.device) -> BatchSource:
        plan, name = self._plan, role.policy or ""
        shards = [Shard(*self._wiring.drawing_ends(replay)) for replay in plan.shards_of(role)]
        layout, stream = windows_layout(plan, name), copy_stream_to(device)
        return DrawnWindows(
            shards,
            [Staging(layout, len(shards), device, stream) for _ in range(2)],
            window_shape(plan, name),
            draw_of(plan, name),
            counters,
            place=role.index,
            trainers=len(plan.trainers(name)),
            ahead=windows_ahead(plan),
            device=device,
        )

    def _part_sender(self, role: RolePlan, policy: Policy, algorithm: Algorithm) -> PartSender:
        slots = slots_of(checkpoint_part(policy, algorithm, Counters()))
        return PartSender(self._wiring.part_outbox(role, slots))

    def _part_copy(self, policy: Policy, algorithm: Algorithm, device: torch.device) -> PartCopy | None:
        stream = copy_stream_to(device)
        return None if stream is None else PartCopy(part_tensors(policy, algorithm), stream)

    def _part(self, name: str) -> Mapping[str, Any]:
        assert self._restored is not None
        policies = self._restored["policies"]
        if name not in policies:
            raise UserError(f"the checkpoint has no policy '{name}' (it has {', '.join(policies)}); use `srlhpc run`")
        part: Mapping[str, Any] = policies[name]
        return part

    def _batches(self, name: str, device: torch.device) -> Batches:
        plan = self._plan
        layout, blocks = block_layout(plan, name), batch_blocks(plan, name)
        spec = plan.spec.policies[name].batch
        stream = copy_stream_to(device)
        return Batches(
            [Staging(layout, blocks, device, stream) for _ in range(spec.buffers)],
            uses=spec.uses,
            max_policy_lag=oldest_trained(plan, name),
            queue=spec.queue,
        )

    def _settings(self, name: str) -> TrainerSettings:
        plan, spec = self._plan, self._plan.spec
        # The steps and updates of the first trained policy are the run's.
        leads = name == plan.trained_policies[0]
        every = spec.checkpoint.every_updates or (plan.serial_checkpoint_updates if plan.serial else None)
        return TrainerSettings(
            policy=name,
            stop_steps=spec.stop.steps if leads else None,
            stop_updates=spec.stop.updates if leads else None,
            checkpoint_updates=every if leads else None,
            is_version=spec.versions.is_due,
            pauses=plan.serial,
        )

    def _lag_limiter(self, role: RolePlan) -> LagLimiter:
        plan, name = self._plan, role.policy or ""
        requests, grants = self._wiring.grant_ends(role)
        return LagLimiter(
            requests,
            grants,
            fragments=block_fragments(plan, name),
            batch=plan.spec.policies[name].batch.fragments,
            max_policy_lag=max_policy_lag(plan, name) or 0,
            uses=plan.spec.policies[name].batch.uses,
        )
