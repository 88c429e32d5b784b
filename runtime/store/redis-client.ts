/** What the connection needs of a Redis client, and what a server may reply. */
import { ModuleError } from '../../schemas/index.ts'

export type Args = readonly string[]
/** What a command does to the data: a replica may serve one that reads. */
export type CommandAccess = 'read' | 'write'

/** What the three client classes have in common, as far as it is used. */
export interface RedisClient {
  connect(): Promise<unknown>
  destroy(): void
  send(key: string | undefined, access: CommandAccess, args: Args, timeoutMs: number): Promise<unknown>
  /** Whether a command would be written at once. */
  ready(): boolean
  onError(listener: (error: unknown) => void): void
}

/** The server replied with an error: `message` is its text. */
export class ReplyError extends ModuleError {}

export const backoffMs = (tries: number): number =>
  Math.min(2000, 50 * 2 ** Math.min(tries, 6)) * (0.5 + Math.random() / 2)
