# Completion of pegboard for PowerShell: add this to $PROFILE.
Register-ArgumentCompleter -Native -CommandName pegboard -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    $begun = if ($wordToComplete -eq '') { @('--new-word') } else { @() }
    pegboard __complete @begun -- @words 2>$null | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        if (-not $about) { $about = $value }
        [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $about)
    }
}
