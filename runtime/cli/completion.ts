/**
 * `gatehouse completion SHELL` prints a script that completes commands, options and values.
 *
 * The scripts call the program (`gatehouse __complete -- words`), so the candidates are always up to date.
 */
import { Argument, type Command } from 'commander'
import { print } from '../toolkit/terminal/output.ts'

const bash = `# bash completion for gatehouse
_gatehouse() {
  local line
  COMPREPLY=()
  while IFS=$'\\t' read -r line _; do
    [ -n "$line" ] && COMPREPLY+=("$line")
  done < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [ "\${#COMPREPLY[@]}" -gt 0 ] || compopt -o default
}
complete -F _gatehouse gatehouse
`

const zsh = `#compdef gatehouse
_gatehouse() {
  local -a found
  local word about
  while IFS=$'\\t' read -r word about; do
    [ -n "$word" ] && found+=("\${word//:/\\\\:}:\${about}")
  done < <("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe gatehouse found; else _files; fi
}
compdef _gatehouse gatehouse
`

const fish = `# fish completion for gatehouse
function __gatehouse_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete -- $words[2..-1] 2>/dev/null
end
# Complete file names when the program returns no candidates.
complete -c gatehouse -n 'test (count (__gatehouse_complete)) -gt 0' -f -a '(__gatehouse_complete)'
`

const scripts = { bash, zsh, fish } as const

const installCommands = {
  bash: 'gatehouse completion bash > ~/.local/share/bash-completion/completions/gatehouse',
  zsh: 'gatehouse completion zsh > "${fpath[1]}/_gatehouse"',
  fish: 'gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish',
} as const

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .summary('print a shell completion script')
    .description(
      'Prints a completion script for the shell. The script completes commands, options and their values.',
    )
    .addArgument(new Argument('<shell>', 'shell to print the script for').choices(Object.keys(scripts)))
    .addHelpText(
      'after',
      `\nInstall:\n${Object.values(installCommands)
        .map((line) => `  ${line}`)
        .join('\n')}\n\nExit codes: 0 done, 2 invalid usage.`,
    )
    .action((shell: keyof typeof scripts) => {
      print(scripts[shell])
    })
}

/**
 * Adds the command that the scripts call. The command prints one candidate per line: the word, a tab and a description.
 */
export function addCompleteCommand(program: Command, load: (name: string) => Promise<void>): void {
  program
    .command('__complete', { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const { candidates } = await import('./help/complete.ts')
      const name = words.slice(0, -1).find((word) => !word.startsWith('-'))
      if (name !== undefined) await load(name)
      const lines = candidates(program, words).map(
        ({ word, about }) => `${word}\t${about.replace(/\s+/g, ' ')}`,
      )
      if (lines.length > 0) print(lines.join('\n'))
    })
}
