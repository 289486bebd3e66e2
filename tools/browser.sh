#!/usr/bin/env bash
# What the browser tests need, as far as it can be had: Debian's chromium, and axe-core from npm in the folder named.
# Tests skip, and say so, where either is missing.
set -u
FOLDER=${1:?name a folder for axe-core}
AXE=4.14.1

if ! command -v chromium > /dev/null && command -v apt-get > /dev/null && [ "$(id -u)" = 0 ]; then
    { apt-get update && apt-get install --yes --no-install-recommends chromium; } > /dev/null 2>&1 \
        || echo "no chromium to be had: the browser tests skip" >&2
fi
if [ ! -f "$FOLDER/package/axe.min.js" ] && command -v npm > /dev/null; then
    mkdir -p "$FOLDER"
    { cd "$FOLDER" && npm pack "axe-core@$AXE" && tar xzf "axe-core-$AXE.tgz" package/axe.min.js; } > /dev/null 2>&1 \
        || echo "no axe-core to be had: the accessibility tests skip" >&2
fi
exit 0
