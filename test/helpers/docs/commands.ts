/**
 * Reads the commands in a page. A command is a line of an `sh` block, or a line of an indented block, that starts with the
 * name of a program. `$ ` and comments are removed, and continued lines are joined.
 */
import { readFileSync } from 'node:fs'

/** Pages in which each command is run by a session, covered by another test, or listed with a reason why it cannot run. */
export const commandPages = [
  'README.md',
  ...[
    'install',
    'quickstart-cluster',
    'kind',
    'dev',
    'up',
    'clients',
    'proxy',
    'shell',
    'virtual-server',
    'workflows',
    'authorization-server',
    'policies',
    'tool-pinning',
    'symptoms',
    'troubleshooting',
  ].map((name) => `docs/guides/${name}.md`),
]

export interface PageCommand {
  readonly page: string
  readonly text: string
  /** Lines that the page shows below a command that starts with `$`. */
  readonly output: readonly string[]
}

const block = /^```sh\n([\s\S]*?)^```|(?<=\n\n)((?: {4}.*\n|\n(?= {4}))+)/gm
const command =
  /^(\$ )?((?:gatehouse|kubectl|helm|make|npm|npx|docker|kind|curl|gcloud|cosign)(?! *:)(?: .*)?)$/

/** Returns the commands of a page in order. */
export function commandsIn(page: string): readonly PageCommand[] {
  const text = readFileSync(page, 'utf8')
  return [...text.matchAll(block)].flatMap(([, fenced, indented = '']) =>
    commandsOfBlock(page, fenced ?? indented.replaceAll(/^ {4}/gm, '')),
  )
}

function commandsOfBlock(page: string, text: string): PageCommand[] {
  const found: { page: string; text: string; output: string[]; isShown: boolean }[] = []
  for (const line of text.replaceAll(/ *\\\n\s*/g, ' ').split('\n')) {
    const [, prompt, words] = command.exec(line) ?? []
    const last = found.at(-1)
    if (words !== undefined && (prompt !== undefined || !last?.isShown))
      found.push({ page, text: withoutComment(words), output: [], isShown: prompt !== undefined })
    else if (last?.isShown && line.trim() !== '') last.output.push(line)
  }
  return found.map(({ isShown: _, ...rest }) => rest)
}

function withoutComment(line: string): string {
  return line.replace(/ +# .*$/, '').trim()
}
