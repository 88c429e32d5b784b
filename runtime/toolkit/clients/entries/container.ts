/**
 * Parses `docker run` and `podman run` into image, arguments, variables and volumes.
 *
 * Drops flags that matter only on this machine. Skips unknown flags and flags that restrict or extend the server's
 * access, and adds a note for each.
 * Source: docker container run, Options; podman-run(1).
 */
import { own } from '../../../../schemas/index.ts'
import type { EntryContainer, Note, EntryProgram } from './entry.ts'
import type { Unwrapped } from './bridges.ts'
import { printableName } from './members.ts'
import { programName } from './package.ts'
import { fillValue, literalOf, splitValue, type Value } from './value.ts'

type Meaning = 'env' | 'volume' | 'mount' | 'drop' | 'note' | 'switch' | 'note-switch'

/** Flags by meaning. All flags except switches take a value. */
const flags: Readonly<Record<Meaning, string>> = {
  env: '-e --env',
  volume: '-v --volume',
  mount: '--mount',
  drop: `--name --hostname -h --domainname --label -l --label-file --annotation --platform --pull --log-driver --log-opt
    --restart -p --publish --expose --attach -a --detach-keys --cidfile --stop-signal --stop-timeout --health-cmd
    --health-interval --health-retries --health-start-interval --health-start-period --health-timeout --pidfile --tz`,
  note: `--env-file --entrypoint --network --net --network-alias --net-alias --ip --ip6 --link --link-local-ip --mac-address
    --add-host --dns --dns-option --dns-opt --dns-search -u --user --group-add --userns -w --workdir -m --memory
    --memory-reservation --memory-swap --memory-swappiness --kernel-memory --cpus -c --cpu-shares --cpu-period --cpu-quota
    --cpu-rt-period --cpu-rt-runtime --cpuset-cpus --cpuset-mems --pids-limit --shm-size --ulimit --sysctl --oom-score-adj
    --blkio-weight --blkio-weight-device --device-read-bps --device-read-iops --device-write-bps --device-write-iops --gpus
    --device --device-cgroup-rule --cgroup-parent --cgroupns --ipc --pid --uts --isolation --runtime --storage-opt --tmpfs
    --volume-driver --volumes-from --security-opt --cap-add --cap-drop --secret --pod`,
  switch: `-i --interactive -t --tty --rm --init -d --detach -q --quiet -P --publish-all --sig-proxy --no-healthcheck
    --disable-content-trust --replace --rmi --tls-verify`,
  'note-switch': '--privileged --read-only --oom-kill-disable --use-api-socket --env-host --no-hosts',
}
const meanings: Readonly<Record<string, Meaning>> = Object.fromEntries(
  Object.entries(flags).flatMap(([meaning, names]) =>
    names.split(/\s+/).map((name) => [name, meaning as Meaning] as const),
  ),
)
const switches: ReadonlySet<Meaning | undefined> = new Set(['switch', 'note-switch'])

/** Global flags with a value, which come before `run`. */
const globalFlags: ReadonlySet<string> = new Set(
  '--config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey --connection --url'.split(
    ' ',
  ),
)

export function unwrapContainer(program: EntryProgram): Unwrapped<EntryProgram> | undefined {
  const name = programName(program.command)
  if (name !== 'docker' && name !== 'podman') return undefined
  // A flag such as `--env=NAME=${VALUE}` begins with literal text.
  const words = program.args.map(([first]) => (typeof first === 'string' ? first : ''))
  const read = new ContainerFlags(program)
  let at = 0
  for (; words[at]?.startsWith('-'); at++) if (globalFlags.has(words[at] ?? '')) at++
  if (words[at] === 'container') at++
  if (words[at] !== 'run') return undefined
  read.words.push(...program.args.slice(0, ++at))
  while (words[at]?.startsWith('-')) {
    if (words[at++] === '--') break
    for (const { flag, attached } of flagsIn(program.args[at - 1] ?? [])) {
      const meaning = own(meanings, flag)
      const takesValue = meaning === undefined ? isValueNext(words, at) : !switches.has(meaning)
      const value = attached ?? (takesValue ? program.args[at++] : undefined)
      if (takesValue && !value) return undefined
      read.take({ flag, meaning, value, attached: attached !== undefined })
    }
  }
  const image = literalOf(program.args[at] ?? [])
  if (!image) return undefined
  const container = { image, args: program.args.slice(at + 1), volumes: read.volumes }
  const args = [...read.words, ...program.args.slice(at)]
  return { target: { ...program, args, env: read.env, container }, notes: read.notes }
}

/** Returns the image that `docker run` or `podman run` starts. Undefined for other commands. */
export function imageOf([command = '', ...args]: readonly string[]): string | undefined {
  const program: EntryProgram = {
    kind: 'program',
    command: [command],
    args: args.map((word) => [word]),
    env: new Map(),
  }
  return unwrapContainer(program)?.target.container?.image
}

interface FlagWord {
  readonly flag: string
  /** The value, if it is part of the same word as the flag. */
  readonly attached: Value | undefined
}

/** Splits a word into flags: `--flag`, `--flag=value`, `-it`, `-eNAME=value`. */
function flagsIn(word: Value): readonly FlagWord[] {
  const [first = '', ...rest] = word
  const text = typeof first === 'string' ? first : ''
  if (text.startsWith('--')) {
    const pair = splitValue(word, /=/)
    return [{ flag: literalOf(pair?.[0] ?? word) ?? text, attached: pair?.[1] }]
  }
  const found: FlagWord[] = []
  for (let at = 1; at < text.length; at++) {
    const flag = `-${text[at]}`
    const value = text.slice(at + 1).replace(/^=/, '')
    const attached = [...(value === '' ? [] : [value]), ...rest]
    if (switches.has(own(meanings, flag))) found.push({ flag, attached: undefined })
    else return [...found, { flag, attached: attached.length > 0 ? attached : undefined }]
  }
  return found
}

/** `registry/name:tag`, or `name:tag`. */
const imageForm = /^[a-z0-9][\w.-]*(?::\d+)?(?:\/[\w.-]+)+(?:[:@].*)?$|^[a-z0-9][\w.-]*[:@][\w.:-]+$/

/**
 * True when the word after an unknown flag is treated as the flag's value: it is neither a flag nor an image, and
 * another word follows it.
 */
function isValueNext(words: readonly string[], at: number): boolean {
  const next = words[at] ?? '-'
  return !next.startsWith('-') && !imageForm.test(next) && at + 1 < words.length
}

interface Flag {
  readonly flag: string
  /** Undefined for an unknown flag. */
  readonly meaning: Meaning | undefined
  /** Undefined for a switch. */
  readonly value: Value | undefined
  /** True when the value is part of the same word as the flag. */
  readonly attached: boolean
}

class ContainerFlags {
  readonly env: Map<string, Value>
  /** Words of the command before the image. These words refer to variables whose values are in `env`. */
  readonly words: Value[] = []
  readonly volumes: EntryContainer['volumes'][number][] = []
  readonly notes: Note[] = []

  constructor({ env }: EntryProgram) {
    this.env = new Map(env)
  }

  take({ flag, meaning, value, attached }: Flag): void {
    this.#word(flag, meaning === 'env' && value ? this.#variable(flag, value) : value, attached)
    if (meaning === 'volume') this.#volume(literalOf(value ?? []) ?? '')
    else if (meaning === 'mount') this.#mount(literalOf(value ?? []) ?? '')
    else if (meaning === 'note' || meaning === 'note-switch') {
      this.#noteLost(flag)
    } else if (meaning === undefined) {
      this.notes.push({
        field: printableName(flag),
        text: 'this flag is unknown and has no effect in a cluster',
        loses: true,
      })
    }
  }

  #noteLost(flag: string): void {
    const text = 'this container flag has no equivalent in a cluster and is not converted'
    this.notes.push({ field: flag, text, loses: true })
  }

  #word(flag: string, value: Value | undefined, attached: boolean): void {
    if (value && attached && flag.startsWith('--'))
      this.words.push(fillValue([`${flag}=`, ...value], () => undefined))
    else this.words.push([flag], ...(value ? [value] : []))
  }

  /** Sets the variable and returns its name. Returns `value` when the name contains a reference. */
  #variable(flag: string, value: Value): Value {
    const pair = splitValue(value, /=/)
    const name = literalOf(pair?.[0] ?? value)
    if (name === undefined) {
      this.#noteLost(flag)
      return value
    }
    if (pair) this.env.set(name, pair[1])
    else if (!this.env.has(name)) this.env.set(name, [{ kind: 'env', name }])
    return [name]
  }

  #volume(text: string): void {
    // A path with a drive letter contains a colon.
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
        text: 'only host folders are converted to volumes',
        loses: true,
      })
  }
}
