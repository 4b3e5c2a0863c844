#!/usr/bin/env bash
# kro and our loop over the instances of kro's corpus, each on its own real API server; prints `SHOW 03 live N/M` and every
# difference. Builds kro from its public module the first time.
#   tests/peer/live.sh [PART OF A NAME]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
./dev servers >/dev/null
tests/peer/build-kro.sh >/dev/null
cargo build -q --release -p plinth-peer
"${CARGO_TARGET_DIR:-target}/release/peer-live" "${PLINTH_DATA:-../shared/data}/kro" "$@"
