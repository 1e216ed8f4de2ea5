#!/bin/sh
# Virtual environments of the rivals, each with the torch that srlhpc is tested with: make bench-rivals
set -eu
cd "$(dirname "$0")/../.."
FOLDER=${1:-.venv-rivals}; PYTHON=${PYTHON:-python3}
pins=$(mktemp); trap 'rm -f "$pins"' EXIT
grep '^torch==' constraints.txt >"$pins"
install() {
  name=$1; shift
  [ -x "$FOLDER/$name/bin/python" ] || "$PYTHON" -m venv "$FOLDER/$name"
  "$FOLDER/$name/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$pins" "$@"
}
install cleanrl torch numpy gymnasium envpool
# Sample Factory takes numpy 1 only, and its own choice of ale-py comes without games.
install sample-factory 'sample-factory==2.1.1' 'numpy<2' 'ale-py==0.12.1' 'opencv-python-headless<4.11'
"$FOLDER/sample-factory/bin/python" -m pip uninstall --quiet --yes shimmy 2>/dev/null || true
install stable-baselines3 torch 'stable-baselines3>=2.4' 'gymnasium[box2d,mujoco]' 'minatar==1.0.15' \
  'ale-py==0.12.1' opencv-python-headless
install replay torch numpy cpprb torchrl
echo "rivals in $FOLDER; next: python benchmarks/compare_rivals.py, or"
echo "  $FOLDER/stable-baselines3/bin/python benchmarks/sb3_dqn.py breakout  (or sb3_sac.py pendulum)"
