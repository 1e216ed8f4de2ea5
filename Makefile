# `make run` trains an agent, `make test` checks everything. Both set up .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The same packages on Open MPI, for tests.
OPENMPI := $(VENV)/openmpi
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
# A package without what it brings.
ALONE := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-deps
# How many tests `make test` runs at the same time. Those on Slurm mostly wait.
WORKERS ?= 3
# Everything that the jobs in jobs/ need, but EnvPool and JaxMARL, which are large.
EXTRAS := mpich,atari,minatar,box2d,mujoco,mamujoco,dm-control,pettingzoo,openspiel,vizdoom,minigrid,crafter,league,plot,video,bench

.PHONY: run venv venv-test test test-large lint types format slurm-lab slurm-lab-stop bench-rivals clean

run: venv
	$(BIN)/srlhpc run jobs/cartpole.yaml

venv: $(VENV)/.installed

venv-test: $(VENV)/.installed-test $(OPENMPI)/.installed

test: export OMP_NUM_THREADS ?= 1
test: lint types
	$(BIN)/python -m pytest -m "" -n $(WORKERS) --max-worker-restart=0

lint: venv-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: venv-test
	$(BIN)/mypy

format: venv-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The tests of what is too large for every machine: EnvPool (740 MB), JaxMARL (500 MB), and Google Football, which is built.
LARGE := $(VENV)/large
test-large: export OMP_NUM_THREADS ?= 1
test-large: venv-test
	$(BIN)/python -m venv $(LARGE)
	$(BIN)/python -c 'import sysconfig as s; print("import site; site.addsitedir(%r)" % s.get_path("purelib"))' \
		>"$$($(LARGE)/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')/others.pth"
	$(LARGE)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[envpool,smax]'
	sh envs/_football_build.sh $(LARGE)/bin/python
	$(LARGE)/bin/python -m pytest -q tests/envs/test_envpool.py tests/envs/test_envpool_pools.py tests/envs/test_football.py \
		tests/envs/test_smax.py

# The MPI tests alone, on every rank of a world, for example `make test-mpi-4`.
test-mpi-%: export OMP_NUM_THREADS ?= 1
test-mpi-%: venv-test
	$(BIN)/mpiexec -n $* $(BIN)/python -m pytest -q -m mpi -p no:cacheprovider

# A real Slurm cluster on this machine, for the tests marked `slurm`; prints the SLURM_CONF to export.
slurm-lab:
	@tests/on_slurm/lab/start.sh

slurm-lab-stop:
	@tests/on_slurm/lab/stop.sh

# What srlhpc is compared with, in .venv-rivals; then: python benchmarks/compare_rivals.py
bench-rivals:
	@benchmarks/rivals/install.sh

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "srlhpc needs Python 3.11 or newer; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python setup.cfg pyproject.toml constraints.txt
	@echo "Installing srlhpc into $(VENV); torch is large, so this can take minutes."
	$(INSTALL) '.[$(EXTRAS)]'
	$(ALONE) overcooked
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(INSTALL) '.[$(EXTRAS),test]'
	touch $@

# Two MPIs cannot share a prefix; one environment can use the packages of another.
$(OPENMPI)/.installed: $(VENV)/.installed-test
	$(BIN)/python -m venv --without-pip $(OPENMPI)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--prefix $(OPENMPI) openmpi
	$(BIN)/python -c 'import sysconfig as s; print("import site; site.addsitedir(%r)" % s.get_path("purelib"))' \
		>"$$($(OPENMPI)/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')/others.pth"
	touch $@
