/**
 * Completes the rotation of an HMAC secret: reseals records under older secrets with the current secret in the
 * background. Also counts the records and tokens that still need an older secret, which shows operators when they can
 * remove that secret.
 *
 * runtime/store reseals a record when it is read. This module handles all other records. The module scans the store
 * page by page, with a pause after each page, on one replica at a time. That replica stores the result for all
 * replicas. The scan starts some time after a change, so that slower replicas do not find records that they cannot
 * open. Clients store the refresh tokens, so this server can only wait until these tokens are used or expire.
 * Source: docs/reference/specification/external-auth.md, hmacSecretRefs ("First entry is current, the rest only
 * verify").
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

interface RotationParts {
  /** Namespace of the authorization server. */
  readonly store: Store
  readonly sealed: SealedStore
  readonly secrets: Secrets
  readonly now: () => number
  readonly log: Log
  /** Interval between checks. 0: never. */
  readonly everyMs: number
  /** True when every replica can be expected to have the current secrets. */
  readonly isSettled: () => boolean
}

export interface Rotation {
  /** Returns the number of uses of each old secret, by position; undefined until they have been counted. */
  uses(): readonly SecretUse[] | undefined
  close(): void
}

/** Interval between scans. Later scans find records that earlier scans missed. */
const againMs = 10 * 60_000
const resultLifeMs = 24 * 3_600_000
const lockMs = 60_000
/** Pause after each page, so that the store can serve other requests. */
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
    const current = idsOf(secrets)
    if (current.join() !== ids.join()) {
      ids = current
      known = undefined
    }
    if (ids.length < 2 || !parts.isSettled()) return
    const found = decode(result, await store.get(resultKey))
    if (found && found.secrets.join() === ids.join() && now() - found.atMs < againMs) adopt(found)
    if (known !== undefined && now() - known.atMs < againMs) return
    const token = randomUUID()
    if (!(await store.set(lockKey, token, { ttlMs: lockMs, onlyIf: 'absent' }))) return
    try {
      const made = await sealAgain(parts, current, closing.signal)
      if (made) {
        await store.set(resultKey, JSON.stringify(made), { ttlMs: resultLifeMs })
        adopt(made)
      }
    } finally {
      await releaseLock(store, token)
    }
  }

  function adopt(next: Result): void {
    const before = known
    known = next
    for (const { position, records, refreshTokens } of usesOf(next)) {
      const old = before && usesOf(before).find((use) => use.position === position)
      const secret = `hmacSecretRefs[${position}]`
      const isUnused = records + refreshTokens === 0
      if (old && isUnused === (old.records + old.refreshTokens === 0)) continue
      if (isUnused) log.info('an old HMAC secret is no longer needed and can be removed', { secret })
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
      // The store is down, which its own health check reports.
      if (!(error instanceof GatehouseError) && !closing.signal.aborted)
        log.error('resealing records failed', { err: error })
    } finally {
      running = false
    }
  }

  return {
    uses() {
      const current = idsOf(secrets)
      if (current.length < 2) return []
      // Positions match the configuration only after the first secret is in use.
      if (!parts.isSettled()) return undefined
      return known?.secrets.join() === current.join() ? usesOf(known) : undefined
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
    const found = uses.find((use) => use.id === id)
    return { position: index + 1, records: found?.records ?? 0, refreshTokens: found?.refreshTokens ?? 0 }
  })
}

/** Scans all records once. Returns undefined when a change or another replica interrupted the scan. */
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

  async function examine(key: string): Promise<void> {
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
    await Promise.all(keys.map(examine))
    await delay(pauseMs, undefined, { signal })
  }
  if (resealed > 0) log.info('resealed records under the current HMAC secret', { records: resealed })
  const uses: Use[] = older.map((id) => ({
    id,
    records: records.get(id) ?? 0,
    refreshTokens: refreshTokens.get(id) ?? 0,
  }))
  return { secrets: [...ids], atMs: now(), uses }
}

/** Deletes the lock when this process owns it. */
async function releaseLock(store: Store, token: string): Promise<void> {
  const entry = await store.read(lockKey)
  if (entry?.value === token) await store.swap(lockKey, entry, undefined)
}
