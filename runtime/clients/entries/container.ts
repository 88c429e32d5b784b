/**
 * `docker run` and `podman run`: which image is started, with which arguments, variables and volumes.
 *
 * Flags that concern the container's life on this machine are dropped; those that change what the server may reach are
 * told. A flag that is not known leaves the program as it is, because it may take the image's name for its value.
 */
import { own } from '../../../schemas/index.ts'
import type { EntryContainer, Note, EntryProgram } from './entry.ts'
import type { Unwrapped } from './bridges.ts'
import { programName } from './package.ts'
import { literalOf, splitValue, type Value } from './value.ts'

type Meaning = 'env' | 'volume' | 'mount' | 'drop' | 'tell' | 'switch' | 'tell-switch'

const meanings: Readonly<Record<string, Meaning>> = {
  '-e': 'env',
  '--env': 'env',
  '-v': 'volume',
  '--volume': 'volume',
  '--mount': 'mount',
  '--name': 'drop',
  '--hostname': 'drop',
  '-h': 'drop',
  '--label': 'drop',
  '-l': 'drop',
  '--platform': 'drop',
  '--pull': 'drop',
  '--log-driver': 'drop',
  '--restart': 'drop',
  '-p': 'drop',
  '--publish': 'drop',
  '--env-file': 'tell',
  '--entrypoint': 'tell',
  '--network': 'tell',
  '--net': 'tell',
  '--add-host': 'tell',
  '--dns': 'tell',
  '-u': 'tell',
  '--user': 'tell',
  '-w': 'tell',
  '--workdir': 'tell',
  '-m': 'tell',
  '--memory': 'tell',
  '--cpus': 'tell',
  '--gpus': 'tell',
  '--tmpfs': 'tell',
  '--security-opt': 'tell',
  '--cap-add': 'tell',
  '--cap-drop': 'tell',
  '--device': 'tell',
  '-i': 'switch',
  '-t': 'switch',
  '-it': 'switch',
  '-ti': 'switch',
  '--interactive': 'switch',
  '--tty': 'switch',
  '--rm': 'switch',
  '--init': 'switch',
  '--privileged': 'tell-switch',
  '--read-only': 'tell-switch',
}

export function unwrapContainer(program: EntryProgram): Unwrapped<EntryProgram> | undefined {
  const name = programName(program.command)
  const words = program.args.map((value) => literalOf(value) ?? '')
  const verb = words[0] === 'container' ? 1 : 0
  if ((name !== 'docker' && name !== 'podman') || words[verb] !== 'run') return undefined
  const read = new ContainerFlags(program)
  let at = verb + 1
  for (; at < words.length && words[at]?.startsWith('-'); at++) {
    const [flag = '', attached] = splitFlag(program.args[at] ?? [])
    const meaning = own(meanings, flag)
    if (meaning === undefined) return undefined
    const takesValue = meaning !== 'switch' && meaning !== 'tell-switch'
    if (takesValue && !attached) at++
    const value = attached ?? program.args[at]
    if (!value) return undefined
    read.take({ flag, meaning, value, at, attached: attached !== undefined })
  }
  const image = literalOf(program.args[at] ?? [])
  if (!image) return undefined
  const container = { image, args: program.args.slice(at + 1), volumes: read.volumes }
  return { target: { ...program, args: read.words, env: read.env, container }, notes: read.notes }
}

/** `--flag=value` in two parts. */
function splitFlag(word: Value): readonly [string | undefined, Value | undefined] {
  const pair = literalOf(word.slice(0, 1))?.startsWith('--') ? splitValue(word, /=/) : undefined
  return pair ? [literalOf(pair[0]), pair[1]] : [literalOf(word), undefined]
}

interface Flag {
  readonly flag: string
  readonly meaning: Meaning
  readonly value: Value
  /** Index of the word that holds the value. */
  readonly at: number
  /** The value is part of the flag's word. */
  readonly attached: boolean
}

class ContainerFlags {
  readonly env: Map<string, Value>
  /** The words of the command, with the values of variables left to the environment. */
  readonly words: Value[]
  readonly volumes: EntryContainer['volumes'][number][] = []
  readonly notes: Note[] = []

  constructor({ args, env }: EntryProgram) {
    this.words = [...args]
    this.env = new Map(env)
  }

  take(given: Flag): void {
    const { flag, meaning, value } = given
    if (meaning === 'env') this.#variable(given)
    else if (meaning === 'volume') this.#volume(literalOf(value) ?? '')
    else if (meaning === 'mount') this.#mount(literalOf(value) ?? '')
    else if (meaning === 'tell' || meaning === 'tell-switch') {
      this.notes.push({
        field: flag,
        text: 'this flag of the container is not taken over on a cluster',
        loses: true,
      })
    }
  }

  #variable({ flag, value, at, attached }: Flag): void {
    const pair = splitValue(value, /=/)
    const name = literalOf(pair?.[0] ?? value) ?? ''
    if (pair) {
      this.env.set(name, pair[1])
      this.words[at] = [attached ? `${flag}=${name}` : name]
    } else if (!this.env.has(name)) this.env.set(name, [{ kind: 'env', name }])
  }

  #volume(text: string): void {
    // A drive letter has a colon of its own.
    const [, host, mount, mode] = /^((?:[A-Za-z]:)?[^:]+):([^:]+)(?::(.*))?$/.exec(text) ?? []
    this.#add(host, mount, /(^|,)ro(,|$)/.test(mode ?? ''), '-v')
  }

  #mount(text: string): void {
    const fields = new Map(
      text.split(',').map((part) => [part.split('=', 1)[0] ?? '', part.slice(part.indexOf('=') + 1)]),
    )
    const isBind = (fields.get('type') ?? 'volume') === 'bind'
    const host = isBind ? (fields.get('src') ?? fields.get('source')) : undefined
    const mount = fields.get('dst') ?? fields.get('target') ?? fields.get('destination')
    this.#add(host, mount, fields.has('ro') || fields.has('readonly'), '--mount')
  }

  #add(host: string | undefined, mount: string | undefined, readOnly: boolean, flag: string): void {
    if (host && mount && /^([/~.]|[A-Za-z]:)/.test(host)) this.volumes.push({ host, mount, readOnly })
    else
      this.notes.push({
        field: flag,
        text: 'only folders of the host are taken over as volumes',
        loses: true,
      })
  }
}
