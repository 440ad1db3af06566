#compdef pegboard
# Completion of pegboard for zsh: put this file as _pegboard into a folder of $fpath.
_pegboard() {
    local line value about current
    local -a plain open
    # The word that is typed has its quotes, and the last one may be open.
    current="$QIPREFIX$PREFIX${compstate[quote]}"
    for line in "${(@f)$("${words[1]}" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)current}" 2>/dev/null)}"; do
        [[ -z "$line" ]] && continue
        value="${line%%$'\t'*}"
        about=""
        [[ "$line" == *$'\t'* ]] && about="${line#*$'\t'}"
        value="${value//:/\\:}:$about"
        if [[ "${line%%$'\t'*}" == *[=/] ]]; then
            open+=("$value")
        else
            plain+=("$value")
        fi
    done
    if (( ${#plain} + ${#open} == 0 )); then
        _files
        return
    fi
    (( ${#plain} )) && _describe 'pegboard' plain
    (( ${#open} )) && _describe 'argument' open -S ''
}
if [[ "${funcstack[1]}" == _pegboard ]]; then
    _pegboard "$@"
else
    compdef _pegboard pegboard
fi
