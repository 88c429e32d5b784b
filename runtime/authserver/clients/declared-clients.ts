/**
 * Clients that the operator declared. They get tokens for themselves and cannot sign users in.
 *
 * The file and its secrets are read again every few seconds. A removed client loses its tokens immediately. If it is
 * added again, tokens from before the removal stay invalid: `MachineTokens` stores the removal for every replica. A
 * removal is not stored if no process was running while the client was absent from the file.
 * Source: RFC 6749 sections 2.3.1 and 4.4.
 */
import { timingSafeEqual } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { DeclaredClientSettings } from '../../config/index.ts'
import { sha256 } from '../model/identifiers.ts'
import type { AssertionKeys } from './client-key-sets.ts'

export interface MachineClient {
  readonly id: string
  readonly kind: 'declared'
  /** SHA-256 of each secret. Empty for a client with keys. */
  readonly secretHashes: readonly string[]
  readonly keys: AssertionKeys | undefined
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
  readonly tokenMs: number
  /** True if the client gets only tokens that are bound to a key. */
  readonly isBound: boolean
}

export class DeclaredClients {
  readonly #read: () => readonly DeclaredClientSettings[]
  readonly #now: () => number
  #clients: Clients
  /** Removals that are not stored yet, with their time in Unix milliseconds. */
  readonly #removed = new Map<string, number>()

  /** Throws INVALID_CONFIG listing every unusable secret. */
  constructor(read: () => readonly DeclaredClientSettings[], now: () => number) {
    this.#read = read
    this.#now = now
    const { clients, violations } = load(read())
    throwIfAny(violations)
    this.#clients = clients
  }

  get(clientId: string): MachineClient | undefined {
    return this.#clients.get(clientId)
  }

  all(): readonly MachineClient[] {
    return [...this.#clients.values()]
  }

  /**
   * Reads clients and secrets again. Keeps all previous clients when the file is invalid, and the previous version of a
   * client when its secrets are unusable. Rejects with INVALID_CONFIG in both cases. Calls `storeRemoval` for each
   * removed client; if it rejects, the next reload calls it again.
   */
  async reload(storeRemoval: (clientId: string) => Promise<void>): Promise<void> {
    const { clients: next, violations } = load(this.#read(), this.#clients)
    const nowMs = this.#now()
    for (const id of this.#clients.keys()) if (!next.has(id)) this.#removed.set(id, nowMs)
    this.#clients = next
    await this.#storeRemovals(storeRemoval)
    throwIfAny(violations)
  }

  async #storeRemovals(storeRemoval: (clientId: string) => Promise<void>): Promise<void> {
    try {
      for (const [id, atMs] of [...this.#removed]) {
        await storeRemoval(id)
        if (this.#removed.get(id) === atMs) this.#removed.delete(id)
      }
    } catch {
      // The store is down, which its own health check reports.
    }
  }

  /** True when the client is declared and no removal after this time is waiting to be stored. */
  isDeclaredSince(clientId: string, sinceSec: number): boolean {
    const removedAtMs = this.#removed.get(clientId)
    return this.#clients.has(clientId) && (removedAtMs === undefined || sinceSec * 1000 > removedAtMs)
  }
}

function throwIfAny(violations: readonly string[]): void {
  if (violations.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('; ') })
}

type Clients = ReadonlyMap<string, MachineClient>

/** Replaces a client whose secrets are unusable with its previous version, if any. */
function load(
  settings: readonly DeclaredClientSettings[],
  previous: Clients = new Map(),
): { readonly clients: Clients; readonly violations: readonly string[] } {
  const violations: string[] = []
  const clients = settings.flatMap((client) => {
    const before = violations.length
    const read = toClient(client, violations)
    const usable = violations.length === before ? read : previous.get(client.clientId)
    return usable ? [[usable.id, usable] as const] : []
  })
  return { clients: new Map(clients), violations }
}

function toClient(settings: DeclaredClientSettings, violations: string[]): MachineClient {
  const { clientId, secrets = [], jwks, jwksUri, signingAlg, scopes, resources, tokenMs } = settings
  const secretHashes = secrets.flatMap((secret) => {
    try {
      return [sha256(secret())]
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      violations.push(error.message)
      return []
    }
  })
  const location = jwks ? { jwks: jwks.keys } : jwksUri === undefined ? undefined : { jwksUri }
  return {
    id: clientId,
    kind: 'declared',
    secretHashes,
    keys: location && { ...location, algs: [signingAlg] },
    scopes,
    resources,
    tokenMs,
    isBound: settings.isBound ?? false,
  }
}

/** Compares with every secret. Each comparison takes constant time. */
export function hasSecret({ secretHashes }: MachineClient, secret: string): boolean {
  const given = Buffer.from(sha256(secret))
  return secretHashes.filter((hash) => timingSafeEqual(Buffer.from(hash), given)).length > 0
}
