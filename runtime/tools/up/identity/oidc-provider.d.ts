/** The parts of oidc-provider that Gatehouse and its tests use. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Saved {
    save(): Promise<string>
  }
  interface AccessToken extends Saved {
    resourceServer: unknown
    scope: string | undefined
    readonly expiration: number
  }
  interface Grant extends Saved {
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
  }
  export interface Context {
    body: unknown
    status: number
    readonly oidc: {
      readonly params: Record<string, string | undefined>
      readonly client: { readonly clientId: string }
      readonly session?: { readonly accountId?: string }
      readonly provider: Provider
    }
  }
  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (req: IncomingMessage, res: ServerResponse) => Promise<void>
    registerGrantType(name: string, handler: (ctx: Context) => Promise<void>, params: readonly string[]): void
    interactionDetails(
      req: IncomingMessage,
      res: ServerResponse,
    ): Promise<{
      readonly uid: string
      readonly prompt: { readonly name: string; readonly details: Record<string, unknown> }
      readonly params: Record<string, string>
      readonly session?: { readonly accountId: string }
    }>
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object): Promise<void>
    /** Stores the result, and resolves with the address where the login continues. */
    interactionResult(req: IncomingMessage, res: ServerResponse, result: object): Promise<string>
    /** True to trust the `X-Forwarded-*` headers of requests. */
    proxy: boolean
    readonly Client: {
      find(id: string): Promise<object | undefined>
      readonly adapter: { destroy(id: string): Promise<void> }
    }
    readonly Grant: new (from: {
      accountId: string
      clientId: string
    }) => Grant
    readonly AccessToken: {
      find(value: string): Promise<{ readonly accountId: string } | undefined>
    } & (new (
      from: object,
    ) => AccessToken)
    readonly ResourceServer: new (
      identifier: string,
      info: object,
    ) => object
    on(event: string, listener: (...args: readonly unknown[]) => void): void
  }
}

declare module 'oidc-provider/lib/adapters/memory_adapter.js' {
  /** Returns adapters that share a store. `clockTolerance` is in seconds. */
  export function createMemoryAdapter(clockTolerance: number): (model: string) => object
}
