/**
 * The one screen of `gatehouse dev`: what runs, what does not and why, the address, and how to connect a client.
 *
 * On a terminal it is drawn again on each change; elsewhere each change is one line, so that logs stay readable.
 */
import { painter, print } from '../../terminal/output.ts'
import { forTerminal } from '../../terminal/plain-text.ts'
import type { ClientAddress } from './client-addresses.ts'
import type { ResourceRow, ResourceState } from './resources.ts'
import { roundSecondsSince, secondsSince } from './lines.ts'

export interface Screen {
  readonly title: string
  /** Problems of the latest edit, which is not applied; '' when all is well. */
  readonly problems: string
  /** What the latest edit that is applied changed; '' when there was none. */
  readonly edit: string
  readonly resources: readonly ResourceRow[]
  readonly addresses: readonly ClientAddress[]
}

const shownOutput = 5

export class ScreenWriter {
  readonly #paint: ReturnType<typeof painter>
  readonly #terminal: boolean
  readonly #logs: string
  #last = ''
  readonly #said = new Map<string, string>()
  #rows: ReadonlyMap<string, ResourceRow> = new Map()

  constructor(options: { readonly terminal: boolean; readonly colour: boolean; readonly logs: string }) {
    this.#logs = options.logs
    this.#terminal = options.terminal
    this.#paint = painter({ colour: options.colour })
  }

  show(screen: Screen): void {
    if (!this.#terminal) return this.#showLines(screen)
    const text = this.#render(screen)
    if (text === this.#last) return
    this.#last = text
    print(`\u001b[2J\u001b[H${text}`)
  }

  #render(screen: Screen): string {
    const paint = this.#paint
    const lines = [paint('bold', screen.title), '']
    const width = Math.max(...screen.resources.map(({ label }) => label.length), 10)
    for (const row of screen.resources) {
      const said = described(row, secondsSince)
      lines.push(`  ${this.#mark(row.state)} ${row.label.padEnd(width)}  ${said}`)
      for (const line of outputOf(row)) lines.push(paint('dim', `      ${line}`))
    }
    for (const address of screen.addresses) lines.push('', ...this.#renderAddress(address))
    if (screen.problems) {
      lines.push('', paint('red', 'The latest edit is not applied:'), screen.problems)
    }
    lines.push('', ...(screen.edit ? [paint('dim', screen.edit)] : []))
    lines.push(paint('dim', `Output: gatehouse logs NAME, or the files in ${this.#logs}`))
    lines.push(paint('dim', 'Edits to the manifests apply at once. Ctrl-C stops everything.'))
    return lines.join('\n')
  }

  #renderAddress(address: ClientAddress): string[] {
    const paint = this.#paint
    if (!address.ready) return [`  ${address.name}: ${forTerminal(address.message) || 'starting'}`]
    const backends = address.backends.map(({ name, health }) =>
      paint(health === 'healthy' ? 'green' : 'yellow', health === 'healthy' ? name : `${name} (${health})`),
    )
    return [
      `  ${paint('bold', address.name)}  ${paint('cyan', address.url)}`,
      `  behind it: ${backends.length > 0 ? backends.join(', ') : 'no backends yet'}`,
      ...(address.consoleUrl ? [`  console: ${paint('cyan', address.consoleUrl)}`] : []),
      '',
      '  Connect a client:',
      `    npx @modelcontextprotocol/inspector --cli ${address.url} --transport http --method tools/list`,
      `    or, in a client's configuration:  "${address.name}": { "type": "http", "url": "${address.url}" }`,
    ]
  }

  #mark(state: ResourceState): string {
    if (state === 'ready') return this.#paint('green', '●')
    if (state === 'failed' || state === 'not run') return this.#paint('red', '✕')
    return this.#paint('yellow', state === 'starting' ? '◌' : '○')
  }

  #showLines(screen: Screen): void {
    this.#say('title', screen.title)
    this.#say('logs', `output: gatehouse logs NAME, or the files in ${this.#logs}`)
    for (const row of screen.resources) {
      this.#say(`row ${row.id}`, `${row.label}: ${described(row, roundSecondsSince)}`)
      this.#say(`output ${row.id}`, outputOf(row).join('\n'))
    }
    this.#sayGone(screen.resources)
    for (const address of screen.addresses) this.#sayAddress(address)
    const hadProblems = this.#said.get('problems')
    this.#say('problems', screen.problems && `the latest edit is not applied:\n${screen.problems}`)
    if (hadProblems && !screen.problems) print('edits apply again')
    this.#say('edit', screen.edit)
  }

  #sayGone(rows: readonly ResourceRow[]): void {
    const current = new Map(rows.map((row) => [row.id, row]))
    for (const [id, row] of this.#rows) {
      if (current.has(id)) continue
      this.#said.delete(`row ${id}`)
      this.#said.delete(`output ${id}`)
      print(`${row.label} is gone`)
    }
    this.#rows = current
  }

  #sayAddress(address: ClientAddress): void {
    if (!address.ready) return
    const backends = address.backends.map(({ name, health }) =>
      health === 'healthy' ? name : `${name} (${health})`,
    )
    this.#say(
      `${address.name} backends`,
      `${address.name}: behind it: ${backends.join(', ') || 'no backends yet'}`,
    )
    this.#say(
      `${address.name} url`,
      [
        `${address.name}: ready at ${address.url}`,
        ...(address.consoleUrl ? [`${address.name}: console at ${address.consoleUrl}`] : []),
        'Connect a client:',
        `  npx @modelcontextprotocol/inspector --cli ${address.url} --transport http --method tools/list`,
        'Edits to the manifests apply at once. Ctrl-C stops everything.',
      ].join('\n'),
    )
  }

  /** Prints a line when it differs from what was last said under the same id. */
  #say(id: string, text: string): void {
    if ((this.#said.get(id) ?? '') === text) return
    this.#said.set(id, text)
    if (text) print(text)
  }
}

/** `ready on 127.0.0.1:4483`, `failed: exited with code 1`. */
function described({ state, text, since }: ResourceRow, seconds: (since: number) => number): string {
  const age = since === undefined ? 0 : seconds(since)
  const shown = age > 0 ? `${state} (${age} s)` : state
  if (text === '') return shown
  return `${shown}${state === 'ready' && text.startsWith('on ') ? '' : ':'} ${forTerminal(text)}`
}

function outputOf({ state, lines }: ResourceRow): readonly string[] {
  return state === 'ready' ? [] : lines.slice(-shownOutput).map(forTerminal)
}
