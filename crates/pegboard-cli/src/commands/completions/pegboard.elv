# Completion of pegboard for Elvish: add this to rc.elv.
use str
set edit:completion:arg-completer[pegboard] = {|@words|
    var found = [(pegboard __complete -- (all $words[1..]) 2>/dev/null | from-lines)]
    if (== (count $found) 0) {
        edit:complete-filename $@words
    }
    for line $found {
        var parts = [(str:split "\t" $line)]
        var suffix = ' '
        if (or (str:has-suffix $parts[0] '=') (str:has-suffix $parts[0] '/')) { set suffix = '' }
        edit:complex-candidate $parts[0] &display=(str:join '  ' $parts) &code-suffix=$suffix
    }
}
