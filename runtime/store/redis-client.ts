/** The client interface of a Redis connection, and the server's replies. */
import { ModuleError } from '../../schemas/index.ts'

export type Args = readonly string[]
/** Effect of a command on the data. Reads can be sent to a replica. */
export type CommandAccess = 'read' | 'write'

/** The common interface of the three client classes. */
export interface RedisClient {
  connect(): Promise<unknown>
  destroy(): void
  send(key: string | undefined, access: CommandAccess, args: Args, timeoutMs: number): Promise<unknown>
  /** True when a command would be written immediately. */
  isReady(): boolean
  onError(listener: (error: unknown) => void): void
}

/** The server replied with an error; `message` is its text. */
export class ReplyError extends ModuleError {}

export const backoffMs = (tries: number): number =>
  Math.min(2000, 50 * 2 ** Math.min(tries, 6)) * (0.5 + Math.random() / 2)
