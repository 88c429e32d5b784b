import { reservedTools, type VirtualMCPServerSpec } from '../../../schemas/index.ts'

/** Names that tools of the server itself take; a reference to an embedding server switches tool search on. */
export function reservedNames({ config, embeddingServerRef }: VirtualMCPServerSpec): ReadonlySet<string> {
  return reservedTools({ optimizer: config?.optimizer ?? embeddingServerRef, codeMode: config?.codeMode })
}
