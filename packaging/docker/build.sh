#!/bin/sh
# Builds the program from source and installs it: build.sh FILE. PROFILE is a profile of cargo.
set -eu
profile=${PROFILE:-dist}
case $profile in
  dev) folder=debug ;;
  *) folder=$profile ;;
esac
cargo build --quiet --profile "$profile" --locked --package outlast-cli
mkdir -p "$(dirname "$1")"
cp "${CARGO_TARGET_DIR:-target}/$folder/outlast" "$1"
chmod 755 "$1"
