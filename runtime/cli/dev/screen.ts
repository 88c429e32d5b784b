/**
 * The one screen of `gatehouse dev`: what runs, what does not and why, the address, and how to connect a client.
 *
 * On a terminal it is drawn again on each change; elsewhere each change is one line, so that logs stay readable.
 */
import { painter, print } from '../output.ts'
import type { WorkloadView } from './session.ts'

export interface Screen {
  readonly title: string
  /** Problems of the latest edit, which is not applied; '' when all is well. */
  readonly problems: string
  readonly workloads: readonly WorkloadView[]
  readonly addresses: readonly ClientAddress[]
}

/** A VirtualMCPServer and the address clients use. */
export interface ClientAddress {
  readonly name: string
  readonly url: string
  readonly ready: boolean
  /** Name and health of each backend, as the running server reports them. */
  readonly backends: readonly { readonly name: string; readonly health: string }[]
  readonly message: string
}

export class ScreenWriter {
  readonly #paint: ReturnType<typeof painter>
  readonly #terminal: boolean
  #last = ''
  readonly #said = new Map<string, string>()

  constructor(options: { readonly terminal: boolean; readonly colour: boolean }) {
    this.#terminal = options.terminal
    this.#paint = painter(options.colour)
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
    const width = Math.max(...screen.workloads.map(({ parent }) => label(parent).length), 10)
    for (const view of screen.workloads) {
      lines.push(
        `  ${this.#mark(view.phase)} ${label(view.parent).padEnd(width)}  ${describe(view)}`.trimEnd(),
      )
      for (const line of view.phase === 'failed' ? (view.lines ?? []).slice(-5) : []) {
        lines.push(paint('dim', `      ${line}`))
      }
    }
    for (const address of screen.addresses) lines.push('', ...this.#renderAddress(address))
    if (screen.problems) {
      lines.push('', paint('red', 'The latest edit is not applied:'), screen.problems)
    }
    lines.push('', paint('dim', 'Edits to the manifests apply at once. Ctrl-C stops everything.'))
    return lines.join('\n')
  }

  #renderAddress(address: ClientAddress): string[] {
    const paint = this.#paint
    if (!address.ready) return [`  ${address.name}: ${address.message || 'starting'}`]
    const backends = address.backends.map(({ name, health }) =>
      paint(health === 'healthy' ? 'green' : 'yellow', health === 'healthy' ? name : `${name} (${health})`),
    )
    return [
      `  ${paint('bold', address.name)}  ${paint('cyan', address.url)}`,
      `  behind it: ${backends.length > 0 ? backends.join(', ') : 'no backends yet'}`,
      '',
      '  Connect a client:',
      `    npx @modelcontextprotocol/inspector --cli ${address.url} --transport http --method tools/list`,
      `    or, in a client's configuration:  "${address.name}": { "type": "http", "url": "${address.url}" }`,
    ]
  }

  #mark(phase: WorkloadView['phase']): string {
    if (phase === 'ready') return this.#paint('green', '●')
    if (phase === 'starting') return this.#paint('yellow', '◌')
    return this.#paint('red', '✕')
  }

  #showLines(screen: Screen): void {
    this.#say('title', screen.title)
    for (const view of screen.workloads) {
      const id = `${label(view.parent)} ${view.workload.kind}/${view.workload.metadata.name}`
      this.#say(id, `${label(view.parent)}: ${describe(view)}`)
      if (view.phase === 'failed') this.#say(`${id} lines`, (view.lines ?? []).slice(-5).join('\n'))
    }
    for (const address of screen.addresses) this.#sayAddress(address)
    this.#say('problems', screen.problems && `the latest edit is not applied:\n${screen.problems}`)
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

function label(object: { kind: string; metadata: { name: string } }): string {
  return `${object.kind} ${object.metadata.name}`
}

function describe(view: WorkloadView): string {
  const what = view.workload.metadata.labels?.['app.kubernetes.io/component']
  const part = what ? ` (${what})` : ''
  if (view.phase === 'ready') return `ready on 127.0.0.1:${view.port}${part}`
  if (view.phase === 'failed') return `failed: ${view.why}; trying again${part}`
  if (view.phase === 'not runnable') return `not run here: ${view.why}${part}`
  return `starting${part}`
}
