/**
 * Draws the screen of `gatehouse dev`: each resource's state and the reason for it, the addresses, and instructions for
 * connecting a client.
 *
 * A terminal is redrawn on each change. When the output is not a terminal, one line is printed per change, so that logs
 * stay readable.
 */
import { painter, print } from '../../terminal/output.ts'
import { forTerminal } from '../../terminal/plain-text.ts'
import type { ClientAddress } from './client-addresses.ts'
import type { ResourceRow, ResourceState } from './resources.ts'
import { roundSecondsSince, secondsSince } from './lines.ts'

export interface Screen {
  readonly title: string
  /** Problems with the latest edit, which prevent it from being applied; '' if there are none. */
  readonly problems: string
  /** Summary of the latest applied edit; '' before the first edit. */
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
  readonly #printed = new Map<string, string>()
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
      const text = describeRow(row, secondsSince)
      lines.push(`  ${this.#symbolOf(row.state)} ${row.label.padEnd(width)}  ${text}`)
      for (const line of outputOf(row)) lines.push(paint('dim', `      ${line}`))
    }
    for (const address of screen.addresses) lines.push('', ...this.#renderAddress(address))
    if (screen.problems) {
      lines.push('', paint('red', 'The latest edit was not applied:'), screen.problems)
    }
    lines.push('', ...(screen.edit ? [paint('dim', screen.edit)] : []))
    lines.push(paint('dim', `Output: run "gatehouse logs NAME", or see the files in ${this.#logs}`))
    lines.push(
      paint('dim', 'Edits to the manifests take effect immediately. Press Ctrl-C to stop everything.'),
    )
    return lines.join('\n')
  }

  #renderAddress(address: ClientAddress): string[] {
    const paint = this.#paint
    if (!address.ready) return [`  ${address.name}: ${forTerminal(address.message) || 'starting'}`]
    const backends = address.backends.map((backend) =>
      paint(backend.health === 'healthy' ? 'green' : 'yellow', describeBackend(backend)),
    )
    return [
      `  ${paint('bold', address.name)}  ${paint('cyan', address.url)}`,
      ...(address.summary === undefined ? [] : [`  ${paint('red', address.summary)}`]),
      `  backends: ${backends.length > 0 ? backends.join(', ') : 'none yet'}`,
      ...(address.consoleUrl ? [`  console: ${paint('cyan', address.consoleUrl)}`] : []),
      '',
      '  Connect a client:',
      `    npx @modelcontextprotocol/inspector --cli ${address.url} --transport http --method tools/list`,
      `    or, in a client's configuration:  "${address.name}": { "type": "http", "url": "${address.url}" }`,
    ]
  }

  #symbolOf(state: ResourceState): string {
    if (state === 'ready') return this.#paint('green', '●')
    if (state === 'failed' || state === 'not run') return this.#paint('red', '✕')
    return this.#paint('yellow', state === 'starting' ? '◌' : '○')
  }

  #showLines(screen: Screen): void {
    this.#printChange('title', screen.title)
    this.#printChange('logs', `output: run "gatehouse logs NAME", or see the files in ${this.#logs}`)
    for (const row of screen.resources) {
      this.#printChange(`row ${row.id}`, `${row.label}: ${describeRow(row, roundSecondsSince)}`)
      const output = outputOf(row).join('\n')
      // The output of a server that fails again in the same way is not repeated.
      if (output) this.#printChange(`output ${row.id}`, output)
    }
    this.#printRemoved(screen.resources)
    for (const address of screen.addresses) this.#printAddress(address)
    const hadProblems = this.#printed.get('problems')
    this.#printChange('problems', screen.problems && `the latest edit was not applied:\n${screen.problems}`)
    if (hadProblems && !screen.problems) print('the problems are fixed; edits take effect again')
    this.#printChange('edit', screen.edit)
  }

  #printRemoved(rows: readonly ResourceRow[]): void {
    const current = new Map(rows.map((row) => [row.id, row]))
    for (const [id, row] of this.#rows) {
      if (current.has(id)) continue
      this.#printed.delete(`row ${id}`)
      this.#printed.delete(`output ${id}`)
      print(`${row.label} removed`)
    }
    this.#rows = current
  }

  #printAddress(address: ClientAddress): void {
    if (!address.ready) return
    const backends = address.backends.map(describeBackend)
    this.#printChange(
      `${address.name} summary`,
      address.summary === undefined ? '' : `${address.name}: ${address.summary}`,
    )
    this.#printChange(
      `${address.name} backends`,
      `${address.name}: backends: ${backends.join(', ') || 'none yet'}`,
    )
    this.#printChange(
      `${address.name} url`,
      [
        `${address.name}: ready at ${address.url}`,
        ...(address.consoleUrl ? [`${address.name}: console at ${address.consoleUrl}`] : []),
        'Connect a client:',
        `  npx @modelcontextprotocol/inspector --cli ${address.url} --transport http --method tools/list`,
        'Edits to the manifests take effect immediately. Press Ctrl-C to stop everything.',
      ].join('\n'),
    )
  }

  /** Prints text if it differs from the last text with the same id. */
  #printChange(id: string, text: string): void {
    if ((this.#printed.get(id) ?? '') === text) return
    this.#printed.set(id, text)
    if (text) print(text)
  }
}

function describeBackend({ name, health, signInUrl }: ClientAddress['backends'][number]): string {
  if (health === 'healthy') return name
  return `${name} (${signInUrl === undefined ? health : 'sign-in required'})`
}

/** `ready on 127.0.0.1:4483`, `failed: exited with code 1`. */
function describeRow({ state, text, since }: ResourceRow, seconds: (since: number) => number): string {
  const age = since === undefined ? 0 : seconds(since)
  const shown = age > 0 ? `${state} (${age} s)` : state
  if (text === '') return shown
  return `${shown}${state === 'ready' && text.startsWith('on ') ? '' : ':'} ${forTerminal(text)}`
}

function outputOf({ state, lines }: ResourceRow): readonly string[] {
  return state === 'ready' ? [] : lines.slice(-shownOutput).map(forTerminal)
}
