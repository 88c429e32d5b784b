/** The caller's options for a conversion. */
import type { Violation } from '../../../../schemas/index.ts'
import type { Reference } from '../entries/value.ts'
import type { ConvertedManifest, SecretForm } from './secret-store.ts'

export interface ConvertOptions {
  /** Name of both the MCPGroup and the VirtualMCPServer. */
  readonly group: string
  /** The group's description. */
  readonly description: string
  /** Client authentication: anonymous for `gatehouse dev`, or OIDC for a cluster. */
  readonly incoming:
    | { readonly type: 'anonymous' }
    | { readonly type: 'oidc'; readonly config: string; readonly audience: string }
  readonly secrets: SecretForm
  /** Names of variables that are never treated as secrets. */
  readonly plain: ReadonlySet<string>
  /** Images, keyed by the name of the server or of its object. */
  readonly images: ReadonlyMap<string, string>
  /** Keeps secrets in arguments and URLs, where anyone who can read the manifest can see them. */
  readonly keepSecretArgs: boolean
  readonly includeDisabled: boolean
  /** Allows loopback URLs. For local runs only, never for a cluster. */
  readonly allowLoopback: boolean
  /** Prefixes tool names even when there is only one server. */
  readonly prefixOne: boolean
  /** Returns the value of a variable. Undefined when the variable is unknown or must not be resolved. */
  readonly resolve: (reference: Reference) => string | undefined
  readonly home: string
  /** Returns the violations that the admission webhook would report. */
  readonly violationsOf: (manifest: ConvertedManifest) => readonly Violation[]
}
