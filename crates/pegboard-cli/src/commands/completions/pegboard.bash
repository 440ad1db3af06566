# Completion of pegboard for bash: source this file, or put it into a folder of bash-completion.
_pegboard() {
    local line word candidate prefix
    local -a words
    line="${COMP_LINE:0:COMP_POINT}"
    read -ra words <<< "$line"
    word=""
    if [[ "$line" != *[[:space:]] ]]; then
        word="${words[${#words[@]}-1]}"
        unset 'words[${#words[@]}-1]'
    fi
    # Readline replaces only what is after the last `=` or `:`.
    prefix=""
    if [[ "$word" == *[=:]* ]]; then
        prefix="${word%"${word##*[=:]}"}"
    fi
    COMPREPLY=()
    while IFS=$'\t' read -r candidate _; do
        candidate="${candidate#"$prefix"}"
        [[ "$candidate" == *= ]] || candidate+=" "
        COMPREPLY+=("$candidate")
    done < <("${words[0]}" __complete -- "${words[@]:1}" "$word" 2>/dev/null)
}
complete -o nospace -o default -F _pegboard pegboard
