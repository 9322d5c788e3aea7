#!/bin/sh
# Makes the base image of the Dockerfile where no registry of images is reachable: packages of Debian, the clone's own Node,
# and the certificates that this machine trusts. As root, after `npm ci`. Needs podman and debootstrap.
set -eu
cd "$(dirname "$0")/../.."
image=$(sed -n 's/^FROM \(node:[^ ]*\)$/docker.io\/library\/\1/p' scripts/container/Dockerfile)
certificates=/etc/ssl/certs/ca-certificates.crt
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

debootstrap --variant=minbase --include=libstdc++6,ca-certificates trixie "$root"
cp $certificates "$root$certificates"
cp node_modules/node/bin/node "$root/usr/local/bin/"
cp -R "$(npm root --global)/npm" "$root/usr/local/lib/"
ln -s ../lib/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
chroot "$root" useradd --create-home --uid 1000 node
tar -C "$root" -c . | podman import --change ENV=NODE_EXTRA_CA_CERTS=$certificates - "$image"
