# Completion of pegboard for PowerShell: add this to $PROFILE.
Register-ArgumentCompleter -Native -CommandName pegboard -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $typed = $commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.StartOffset -lt $cursorPosition }
    $words = @($typed | ForEach-Object {
        if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.ToString() }
    })
    $begun = if ($wordToComplete -eq '') { @('--new-word') } else { @() }
    pegboard __complete @begun -- @words 2>$null | ForEach-Object {
        $value, $about = $_ -split "`t", 2
        if (-not $about) { $about = $value }
        $inserted = if ($value -match "[ '#,\[\]]") { "'" + $value.Replace("'", "''") + "'" } else { $value }
        [System.Management.Automation.CompletionResult]::new($inserted, $value, 'ParameterValue', $about)
    }
}
