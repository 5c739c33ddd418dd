# Shell functions for the scripts of a native package. The builder fills in
# the package: its name, its folder, its digest, and an extended regular
# expression for its name.
LC_ALL=C
export LC_ALL
name='@NAME@'
dir='@DIR@'
digest='@DIGEST@'
mentioned='@MENTIONED@'

# below FOLDER prints the extended regular expression for the rest of a line
# that is the folder's path or one in it.
below() {
    printf '%s(/|$)\n' "$(printf '%s\n' "$1" | sed 's/[][\\.*^$(){}?+|]/\\&/g')"
}

# process_in FOLDER prints the number of a process whose program, working
# directory or root is in the folder, by whatever path, or that has a file of
# it mapped.
process_in() {
    {
        ls -ld /proc/[0-9]*/exe /proc/[0-9]*/cwd /proc/[0-9]*/root 2>/dev/null |
            sed 's, (deleted)$,,' | grep -E -e " -> $(below "$1")" |
            sed -n 's,^.* /proc/\([0-9][0-9]*\)/[a-z][a-z]* -> .*$,\1,p'
        grep -l -F -e " $1/" /proc/[0-9]*/maps 2>/dev/null |
            sed -n 's,^/proc/\([0-9][0-9]*\)/maps$,\1,p'
        # A container sees the folder under another path, and its inodes all the same.
        {
            find "$1" '(' -type f -o -type d ')' -exec stat -c 'in %d:%i' '{}' + 2>/dev/null
            stat -L -c '%d:%i %n' /proc/[0-9]*/exe /proc/[0-9]*/cwd /proc/[0-9]*/root 2>/dev/null
        } | awk '$1 == "in" { ours[$2] = 1; next } ($1 in ours) { split($2, at, "/"); print at[3] }'
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

# unit_files prints the paths of unit files, and of the files beside them such
# as drop-ins.
unit_files() {
    unit_folders | while IFS= read -r folder; do
        [ -d "$folder" ] || continue
        # What has no size may be a file of /proc, which gives no end of bytes.
        find -L "$folder" -mindepth 1 -maxdepth 2 -type f -size +0c "$@" 2>/dev/null
    done
}

# unit_naming prints a unit file that names the package, or leads to it over a
# link.
unit_naming() {
    {
        unit_files -exec grep -s -l -E -e "$mentioned" -- '{}' +
        unit_files -exec grep -s -h -o -E -e '/[^][:space:]"'"'"'=;,:}{$%[]+' -- '{}' + |
            sort -u | tr '\n' '\000' | xargs -0 -r readlink -f -- 2>/dev/null |
            grep -E -e "^$(below "$real")" | sed 's,^,a unit that leads over a link to ,'
    } | head -n 1 | tr -cd '[:print:]'
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
