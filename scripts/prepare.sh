# shellcheck shell=bash
# Sourced by the other scripts: installs what is missing and makes .venv in the checkout.
# Safe to repeat: does nothing when everything is there.  Expects to be sourced from the checkout's root.

readonly VENV=.venv

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
die() { say "$*" >&2; exit 1; }

# pip ends as if it had failed; what to say about that is not what happened.
trap 'say interrupted >&2; exit 130' INT

# install_packages EXTRAS: the Debian packages without which nothing works ("" = no others, "dev" adds what the
# checks can do without); as root they are installed, otherwise named.
install_packages() {
    local extras=$1 missing=() wanted=()
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    PATH=/usr/sbin:$PATH command -v lvm >/dev/null || missing+=(lvm2)
    PATH=/usr/sbin:/sbin:$PATH command -v losetup >/dev/null || missing+=(mount)
    if [[ $extras == dev ]]; then
        find_vm_packages
        command -v shellcheck >/dev/null || wanted+=(shellcheck)
        command -v man >/dev/null || wanted+=(man-db)
        PATH=/usr/sbin:/sbin:$PATH command -v mkfs.xfs >/dev/null || wanted+=(xfsprogs)
    fi
    local packages=("${missing[@]}" "${wanted[@]}")
    ((${#packages[@]})) || return 0
    if ((EUID != 0)); then
        say "not root, so not installed: ${packages[*]}"
    elif ! command -v apt-get >/dev/null; then
        say "no apt-get here, please install: ${packages[*]}"
    else
        say "installing Debian packages: ${packages[*]}"
        apt_get update && apt_get install "${packages[@]}" 2>/dev/null && return 0
        ((${#missing[@]} == 0)) || apt_get install "${missing[@]}" || die "apt-get could not install ${missing[*]}"
        local package
        for package in "${wanted[@]}"; do
            apt_get install "$package" 2>/dev/null || say "going on without $package, which can't be installed here"
        done
    fi
}

# What the tests in virtual machines need; where one can't be had they are skipped, and say why.
find_vm_packages() {
    local pair
    for pair in linux.uml:user-mode-linux udevadm:udev modprobe:kmod dmsetup:dmsetup systemctl:systemd \
        dbus-daemon:dbus ip:iproute2 mkfs.ext4:e2fsprogs lintian:lintian ar:binutils drbdadm:drbd-utils \
        cryptsetup:cryptsetup-bin; do
        PATH=/usr/sbin:/sbin:$PATH command -v "${pair%%:*}" >/dev/null || wanted+=("${pair##*:}")
    done
    [[ -e /lib/systemd/systemd ]] || wanted+=(systemd-sysv)
}

# Silent when all is well: what Debian's tools say on stderr then (no apt-utils, no terminal) is no news here.
apt_get() {
    local told
    told=$(DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
        -o DPkg::Lock::Timeout=120 "$@" 2>&1) && return 0
    printf '%s\n' "$told" >&2
    return 1
}

# prepare_venv EXTRAS: .venv with the package (editable) and these extras ("" = none, "dev" includes that).
prepare_venv() {
    local extras=$1 stamp
    command -v python3 >/dev/null || die "python3 is missing: apt-get install python3"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "Python 3.11 or newer is needed, this is $(python3 -V)"
    stamp="$PWD $(python3 -VV | tr '\n' ' ') $(sha256sum <pyproject.toml)"
    if [[ -x $VENV/bin/python ]]; then
        [[ $stamp == "$(cat "$VENV/made-$extras" "$VENV/made-dev" 2>/dev/null | head -n 1)" ]] && return 0
    fi
    say "installing the agent and its Python packages into $VENV${extras:+ (with $extras)}: about half a minute"
    python3 -m venv --clear "$VENV" || die "python3 -m venv could not make $VENV (see above)"
    "$VENV/bin/python" -m pip --quiet --disable-pip-version-check --no-input \
        install --editable ".${extras:+[$extras]}" ||
        die "pip could not install the packages: is a package index reachable?"
    printf '%s\n' "$stamp" >"$VENV/made-$extras"
}
