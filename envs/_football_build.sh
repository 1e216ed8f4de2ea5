#!/bin/sh
# Builds Google Football for one Python and installs it there: envs/_football_build.sh [PYTHON]; see docs/football.md.
# The wheel is kept in ~/.cache/srlhpc, so that only the first time takes minutes (about 4 of a core).
# The packages that it asks for are those of Debian and Ubuntu, whose boost is of their own minor version of Python.
set -eu
PYTHON=$(command -v "${1:-python3}")
VERSION=2.10.2
TAG=$("$PYTHON" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/srlhpc/football-$VERSION-$TAG
PACKAGES="cmake build-essential libgl1-mesa-dev libegl1-mesa-dev libsdl2-dev libsdl2-image-dev libsdl2-ttf-dev
libsdl2-gfx-dev libboost-python-dev libboost-thread-dev libboost-filesystem-dev libboost-system-dev"

missing=
for package in $PACKAGES; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
    echo "Football's engine needs more to be built. As root: apt install --no-install-recommends$missing" >&2
    exit 2
fi

if [ -z "$(ls "$CACHE"/*.whl 2>/dev/null)" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$PYTHON" -m venv "$work/venv"
    build="$work/venv/bin/python -m pip"
    $build install --quiet "setuptools<70" wheel psutil numpy
    $build download --quiet --no-deps --no-binary :all: --no-build-isolation -d "$work" "gfootball==$VERSION"
    tar -xzf "$work"/gfootball-*.tar.gz -C "$work"
    source=$(echo "$work"/gfootball-*/)
    engine=$source/third_party/gfootball_engine
    # Eight files at once are compiled in half the time; three of them do not get on with others.
    sed -i 's/-fPIC -g -O3/-fPIC -O2/' "$engine/CMakeLists.txt"
    sed -i '0,/add_library(gamelib/s//set_source_files_properties(src\/misc\/perlin.cpp \
src\/onthepitch\/player\/humanoid\/humanoid.cpp src\/onthepitch\/player\/humanoid\/humanoidbase.cpp \
PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\nadd_library(gamelib/' "$engine/CMakeLists.txt"
    root=$("$PYTHON" -c 'import sys; print(sys.base_prefix)')
    cmake -S "$engine" -B "$engine/built" -DPython_ROOT_DIR="$root" -DCMAKE_UNITY_BUILD=ON \
        -DCMAKE_UNITY_BUILD_BATCH_SIZE=8 >"$work/log" 2>&1 &&
        cmake --build "$engine/built" --parallel "${JOBS:-1}" >>"$work/log" 2>&1 || {
        tail -30 "$work/log" >&2
        echo "Football's engine could not be built; above is the end of what cmake said." >&2
        exit 1
    }
    mkdir -p "$engine/lib" "$CACHE"
    cp "$(find "$engine" -name libgame.so | head -1)" "$engine/lib/prebuilt_gameplayfootball.so"
    (cd "$source" && GFOOTBALL_USE_PREBUILT_SO=1 $build wheel --quiet --no-build-isolation --no-deps -w "$CACHE" .)
fi
"$PYTHON" -m pip install --quiet --no-deps "$CACHE"/*.whl
# What it imports: it declares an old Gym too, which it does not need here.
"$PYTHON" -m pip install --quiet six absl-py psutil opencv-python-headless
echo "installed $(ls "$CACHE"/*.whl)"
