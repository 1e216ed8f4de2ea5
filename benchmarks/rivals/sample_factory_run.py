"""Sample Factory 2.1.1 (APPO) on the benchmark tasks: sample_factory_run.py pong|cartpole FOLDER [its own options].

Settings that srlhpc's jobs share: the network, the batch, epochs, learning rate, two workers with two splits each.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args
from sample_factory.envs.env_utils import register_env
from sample_factory.train import run_rl

COMMON = (
    "--algo=APPO --device=cpu --num_workers=2 --worker_num_splits=2 --rollout=128 --num_batches_per_epoch=4 "
    "--use_rnn=False --recurrence=1 --normalize_input=False --normalize_returns=False --max_grad_norm=0.5 --gamma=0.99 "
    "--gae_lambda=0.95 --async_rl=True --experiment_summaries_interval=3 --experiment=rival --save_every_sec=3600"
)
OF_TASK = {
    "pong": "--num_envs_per_worker=4 --batch_size=256 --num_epochs=1 --encoder_conv_architecture=convnet_atari "
    "--encoder_conv_mlp_layers 512 --obs_scale=255.0 --nonlinearity=relu --learning_rate=0.00025 "
    "--exploration_loss_coeff=0.01",
    "cartpole": "--num_envs_per_worker=8 --batch_size=512 --num_epochs=4 --encoder_mlp_layers 64 64 "
    "--nonlinearity=tanh --learning_rate=0.001 --ppo_clip_ratio=0.2 --exploration_loss_coeff=0.0 --reward_scale=0.1",
}


def make(name: str, _cfg: Any = None, env_config: Any = None, _render_mode: str | None = None) -> gymnasium.Env:
    if name == "cartpole":
        return gymnasium.make("CartPole-v1")
    from pong import Pong

    return Pong(seed=int((env_config or {}).get("env_id", 0) or 0))


def main() -> int:
    task, folder, *more = sys.argv[1:]
    for name in OF_TASK:
        register_env(name, make)
    words = [f"--env={task}", f"--train_dir={folder}", *COMMON.split(), *OF_TASK[task].split(), *more]
    parser, _ = parse_sf_args(argv=words, evaluation=False)
    return int(run_rl(parse_full_cfg(parser, words)))


if __name__ == "__main__":
    sys.exit(main())
