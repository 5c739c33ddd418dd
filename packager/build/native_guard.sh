# Shell functions for the scripts of a native package. The builder fills in
# the package: its name, its folder, its digest, and an extended regular
# expression for its name.
LC_ALL=C
export LC_ALL
name='@NAME@'
dir='@DIR@'
digest='@DIGEST@'
mentioned='@MENTIONED@'

# process_in FOLDER prints the number of a process whose program, working
# directory or root is in the folder, or that has a file of it mapped.
process_in() {
    within=$(printf '%s\n' "$1" | sed 's/[][\\.*^$(){}?+|]/\\&/g')
    {
        ls -ld /proc/[0-9]*/exe /proc/[0-9]*/cwd /proc/[0-9]*/root 2>/dev/null |
            grep -E -e " -> $within(/| \\(deleted\\)\$|\$)" |
            sed -n 's,^.* /proc/\([0-9][0-9]*\)/[a-z][a-z]* -> .*$,\1,p'
        grep -l -F -e " $1/" /proc/[0-9]*/maps 2>/dev/null |
            sed -n 's,^/proc/\([0-9][0-9]*\)/maps$,\1,p'
    } | head -n 1
}

# unit_folders prints the folders that hold units and drop-ins, also those of
# every account.
unit_folders() {
    for base in /etc/systemd /usr/local/lib/systemd /usr/lib/systemd /lib/systemd /run/systemd /run/user/[0-9]*/systemd; do
        for kind in system user transient generator generator.early generator.late system.control user.control; do
            printf '%s\n' "$base/$kind"
        done
    done
    { getent passwd || cat /etc/passwd; } 2>/dev/null | cut -d : -f 6 | sort -u | while IFS= read -r home; do
        printf '%s\n' "$home/.config/systemd/user" "$home/.config/systemd/user.control" "$home/.local/share/systemd/user"
    done
}

# unit_naming prints a unit file, or a file beside it such as a drop-in, that
# names the package.
unit_naming() {
    unit_folders | while IFS= read -r folder; do
        [ -d "$folder" ] || continue
        grep -s -l -E -d skip -D skip -e "$mentioned" -- "$folder"/* "$folder"/*/* 2>/dev/null
    done | head -n 1 | tr -d '[:cntrl:]'
}

# refuse_in_use says on stderr what uses the package, and ends the script.
refuse_in_use() {
    [ -d "$dir" ] || return 0
    pid=$(process_in "$dir")
    real=$(cd "$dir" && pwd -P) || real=$dir
    if [ -z "$pid" ] && [ "$real" != "$dir" ]; then
        pid=$(process_in "$real")
    fi
    if [ -n "$pid" ]; then
        comm=$(tr -cd '[:alnum:] ._:+-' 2>/dev/null <"/proc/$pid/comm") || comm=
        echo "$name is in use: process $pid ($comm) runs from $dir: switch its service to another package and restart it first" >&2
        exit 1
    fi
    file=$(unit_naming)
    if [ -n "$file" ]; then
        echo "$name is in use: $file names it: switch that service to another package, or take the package out of that file, first" >&2
        exit 1
    fi
    return 0
}

# refuse_other ends the script if another package of the same name is there.
refuse_other() {
    [ -f "$dir/1bit-package.json" ] || return 0
    there=$(sha256sum <"$dir/1bit-package.json") || there=unreadable
    there=${there%% *}
    if [ "sha256:$there" != "$digest" ]; then
        echo "$dir holds another package of that name (digest sha256:$there, not $digest): no package is replaced by another of its name: remove it first, or give this one another id when it is built (--id)" >&2
        exit 1
    fi
    return 0
}
