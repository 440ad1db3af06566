#compdef pegboard
# Completion of pegboard for zsh: put this file as _pegboard into a folder of $fpath.
_pegboard() {
    local line value about
    local -a plain open
    for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -z "$line" ]] && continue
        value="${line%%$'\t'*}"
        about=""
        [[ "$line" == *$'\t'* ]] && about="${line#*$'\t'}"
        value="${value//:/\\:}:$about"
        if [[ "${line%%$'\t'*}" == *= ]]; then
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
