/**
 * The end of an HMAC secret's rotation: what an older secret still seals is sealed again under the current one, in the
 * background, and what still needs the older one is counted, so that it is known when it can be dropped.
 *
 * Records are sealed again when they are read (runtime/store); this is for the others. It goes through the store page
 * by page with a pause after each, one replica at a time, and leaves the result in the store for all of them. It begins a
 * while after a change, so that replicas that are slower to see the new secret do not find records that they cannot open.
 * Refresh tokens are with the clients: they can only be waited for, until they were used or are over.
 * Source: docs/specification/external-auth.md, hmacSecretRefs ("First entry is current, the rest only verify").
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import type { SecretUse } from '../../incoming/index.ts'
import type { Log } from '../../net/index.ts'
import { type SealedStore, sealId, type Secrets, type Store } from '../../store/index.ts'
import { count, decode, list, type Of, record, text } from '../model/codec.ts'
import { family } from '../model/records.ts'
import { familyPrefix } from './state.ts'

export interface RotationParts {
  /** Of the authorization server alone. */
  readonly store: Store
  readonly sealed: SealedStore
  readonly secrets: Secrets
  readonly now: () => number
  readonly log: Log
  /** How often to look whether there is something to do; 0: never. */
  readonly everyMs: number
  /** Whether every replica may be taken to have the secrets that are held here. */
  readonly settled: () => boolean
}

export interface Rotation {
  /** By position; undefined while they are not counted. */
  uses(): readonly SecretUse[] | undefined
  close(): void
}

/** A result is good for so long; then everything is gone through once more, for what was missed. */
const againMs = 10 * 60_000
const resultLifeMs = 24 * 3_600_000
const lockMs = 60_000
/** After each page, so that the store has time for others. */
const pauseMs = 5
const lockKey = 'lock:rotation'
const resultKey = 'rotation'

const use = { id: text, records: count, refreshTokens: count }
const result = record({ secrets: list(text), atMs: count, uses: list(record(use)) })
type Result = NonNullable<ReturnType<typeof result>>
type Use = Of<typeof use>

export function watchRotation(parts: RotationParts): Rotation {
  const { store, secrets, now, log } = parts
  const closing = new AbortController()
  let ids: readonly string[] = idsOf(secrets)
  let known: Result | undefined
  let running = false

  async function tick(): Promise<void> {
    const held = idsOf(secrets)
    if (held.join() !== ids.join()) {
      ids = held
      known = undefined
    }
    if (ids.length < 2 || !parts.settled()) return
    const found = decode(result, await store.get(resultKey))
    if (found && found.secrets.join() === ids.join() && now() - found.atMs < againMs) adopt(found)
    const due = known === undefined || now() - known.atMs >= againMs
    if (!due) return
    const token = randomUUID()
    if (!(await store.set(lockKey, token, { ttlMs: lockMs, onlyIf: 'absent' }))) return
    try {
      const made = await sealAgain(parts, held, closing.signal)
      if (made) {
        await store.set(resultKey, JSON.stringify(made), { ttlMs: resultLifeMs })
        adopt(made)
      }
    } finally {
      await release(store, token)
    }
  }

  function adopt(next: Result): void {
    const before = known
    known = next
    for (const { position, records, refreshTokens } of usesOf(next)) {
      const old = before && usesOf(before).find((one) => one.position === position)
      const secret = `hmacSecretRefs[${position}]`
      const free = records + refreshTokens === 0
      if (old && free === (old.records + old.refreshTokens === 0)) continue
      if (free) log.info('an old HMAC secret can be dropped: nothing needs it any more', { secret })
      else log.info('an old HMAC secret is still needed', { secret, records, refreshTokens })
    }
  }

  const timer = parts.everyMs > 0 ? setInterval(() => void run(), parts.everyMs) : undefined
  timer?.unref()

  async function run(): Promise<void> {
    if (running) return
    running = true
    try {
      await tick()
    } catch (error) {
      // The store is away: its own watch says so.
      if (!(error instanceof GatehouseError) && !closing.signal.aborted)
        log.error('sealing records again failed', { err: error })
    } finally {
      running = false
    }
  }

  return {
    uses() {
      const held = idsOf(secrets)
      if (held.length < 2) return []
      // Positions match the configuration only after the first secret is in use.
      if (!parts.settled()) return undefined
      return known?.secrets.join() === held.join() ? usesOf(known) : undefined
    },
    close() {
      clearInterval(timer)
      closing.abort()
    },
  }
}

function idsOf(secrets: Secrets): readonly string[] {
  return [...new Set(secrets().map(sealId))]
}

function usesOf({ secrets, uses }: Result): readonly SecretUse[] {
  return secrets.slice(1).map((id, index) => {
    const found = uses.find((one) => one.id === id)
    return { position: index + 1, records: found?.records ?? 0, refreshTokens: found?.refreshTokens ?? 0 }
  })
}

/** One pass over everything. Undefined when it was overtaken by a change, or by another replica. */
async function sealAgain(
  { store, sealed, secrets, now, log }: RotationParts,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Result | undefined> {
  const [current = '', ...older] = ids
  const records = new Map<string, number>()
  const refreshTokens = new Map<string, number>()
  const add = (to: Map<string, number>, id: string): void => void to.set(id, (to.get(id) ?? 0) + 1)
  let resealed = 0

  async function look(key: string): Promise<void> {
    const found = await sealed.reseal(key)
    if (!found) return
    if (found.resealed) resealed += 1
    else if (found.sealedBy !== current) add(records, found.sealedBy)
    if (!key.startsWith(familyPrefix)) return
    const tokens = decode(family, found.value)
    if (!tokens || tokens.expiresAtMs <= now() || tokens.signedBy === current) return
    for (const id of tokens.signedBy === undefined ? older : [tokens.signedBy]) add(refreshTokens, id)
  }

  for await (const keys of store.scan()) {
    if (signal.aborted || idsOf(secrets).join() !== ids.join()) return undefined
    if (!(await store.touch(lockKey, lockMs))) return undefined
    await Promise.all(keys.map(look))
    await delay(pauseMs, undefined, { signal })
  }
  if (resealed > 0) log.info('records were sealed again under the current HMAC secret', { records: resealed })
  const uses: Use[] = older.map((id) => ({
    id,
    records: records.get(id) ?? 0,
    refreshTokens: refreshTokens.get(id) ?? 0,
  }))
  return { secrets: [...ids], atMs: now(), uses }
}

/** Only one's own lock. */
async function release(store: Store, token: string): Promise<void> {
  const entry = await store.read(lockKey)
  if (entry?.value === token) await store.swap(lockKey, entry, undefined)
}
