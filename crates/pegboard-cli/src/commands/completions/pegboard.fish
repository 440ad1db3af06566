# Completion of pegboard for fish: put this file into ~/.config/fish/completions.
function __pegboard_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    # The word that is typed has its quotes, and the last one may be open.
    set -l plain (string unescape -- $current; or string unescape -- $current\"; or string unescape -- $current\')
    set -l found ($words[1] __complete -- $words[2..-1] "$plain" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$plain"
    end
end
complete -c pegboard -f -a '(__pegboard_complete)'
