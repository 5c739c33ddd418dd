#!/bin/sh
# Installs the Debian or Ubuntu packages that the demo, the tests and the benchmarks need and that are missing.
# Prints nothing when all are there. "setup.sh tests" adds a browser and a kernel that runs as a program, where the
# distribution packages them; "setup.sh bench" adds what the benchmarks compare with.
set -eu

missing=
# need PACKAGE FILE…: the package is missing when none of the files is there.
need() {
    package=$1
    shift
    for file; do
        if [ -e "$file" ]; then return; fi
    done
    missing="$missing $package"
}
need systemd /lib/systemd/systemd /usr/lib/systemd/systemd
need dbus /usr/bin/dbus-daemon
need dbus-user-session /usr/lib/systemd/user/dbus.socket
need libpam-systemd /lib/*/security/pam_systemd.so /usr/lib/*/security/pam_systemd.so
need util-linux /usr/bin/nsenter
need mount /bin/mount /usr/bin/mount
need passwd /usr/sbin/useradd
need iproute2 /sbin/ip /usr/sbin/ip /bin/ip
need e2fsprogs /sbin/mkfs.ext4 /usr/sbin/mkfs.ext4
need xfsprogs /sbin/mkfs.xfs /usr/sbin/mkfs.xfs
need btrfs-progs /sbin/mkfs.btrfs /usr/sbin/mkfs.btrfs /bin/mkfs.btrfs
need zstd /usr/bin/zstd
need patchelf /usr/bin/patchelf
need tar /bin/tar /usr/bin/tar
need dpkg /usr/bin/dpkg
need rpm /usr/bin/rpm
need libarchive-tools /usr/bin/bsdtar
need pacman-package-manager /usr/bin/pacman
need ca-certificates /etc/ssl/certs/ca-certificates.crt
wanted=
case "${1-}" in
tests)
    [ -e /usr/bin/chromium-headless-shell ] || [ -e /usr/bin/chromium ] || [ -e /usr/bin/google-chrome ] ||
        wanted=chromium-headless-shell
    [ -e /usr/bin/linux.uml ] || wanted="$wanted user-mode-linux"
    ;;
bench) need wrk /usr/bin/wrk ;;
esac
[ -n "$missing$wanted" ] || exit 0

# shellcheck disable=SC2086 # the list is meant to be split
if [ "$(id -u)" != 0 ]; then
    if sudo -n true 2>/dev/null; then exec sudo -n "$0" "$@"; fi
    if [ -z "$missing" ]; then exit 0; fi # without those the tests that need them say that they did not run
    echo "setup: missing packages, install them with: sudo apt-get install$missing" >&2
    exit 1
fi
command -v apt-get >/dev/null || {
    echo "setup: this is not Debian or Ubuntu; install what stands for:$missing" >&2
    exit 1
}
echo "setup: installing$missing $wanted" >&2
export DEBIAN_FRONTEND=noninteractive
# offered prints those of the packages that this distribution has.
offered() {
    for package; do
        if apt-cache show "$package" >/dev/null 2>&1; then echo "$package"; fi
    done
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing $(offered $wanted); } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
