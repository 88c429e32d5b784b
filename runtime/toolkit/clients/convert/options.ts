/** What the caller decides about a conversion. */
import type { Violation } from '../../../../schemas/index.ts'
import type { Reference } from '../entries/value.ts'
import type { ConvertedManifest, SecretForm } from './secret-store.ts'

export interface ConvertOptions {
  /** Name of the MCPGroup and of the VirtualMCPServer. */
  readonly group: string
  /** What the group is for, in words. */
  readonly description: string
  /** How clients get in: anonymous for `gatehouse dev`, or OIDC for a cluster. */
  readonly incoming:
    | { readonly type: 'anonymous' }
    | { readonly type: 'oidc'; readonly config: string; readonly audience: string }
  readonly secrets: SecretForm
  /** Variables whose value may stand in the manifest, whatever it looks like. */
  readonly plain: ReadonlySet<string>
  /** Image by the server's own name or its object's name. */
  readonly images: ReadonlyMap<string, string>
  /** Secrets in arguments and URLs stay there, for everybody to read. */
  readonly keepSecretArgs: boolean
  readonly includeDisabled: boolean
  /** A URL of this machine may be a member: for runs here, never for a cluster. */
  readonly allowLoopback: boolean
  /** With one server, tools keep their names. */
  readonly prefixOne: boolean
  /** The value of a variable; undefined when it is not known or not asked for. */
  readonly resolve: (reference: Reference) => string | undefined
  readonly home: string
  /** What the admission webhook would say of a manifest. */
  readonly violationsOf: (manifest: ConvertedManifest) => readonly Violation[]
}
