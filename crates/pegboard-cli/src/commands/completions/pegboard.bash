# Completion of pegboard for bash: source this file, or put it into a folder of bash-completion.
_pegboard() {
    local candidate
    COMPREPLY=()
    # The line with its quotes goes in, and what Readline is to insert comes out.
    while IFS=$'\t' read -r candidate _; do
        COMPREPLY+=("$candidate")
    done < <("${1:-pegboard}" __complete --bash-line -- "$COMP_WORDBREAKS" "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -o nospace -o default -F _pegboard pegboard
