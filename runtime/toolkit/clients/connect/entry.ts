/**
 * Builds the entry that connects a client to the gateway: the client's entry for a remote server, or a bridge program.
 *
 * The entry never contains a token, only a reference to a variable in the client's syntax.
 */
import { invalidConfig } from '../../../../schemas/index.ts'
import type { BearerReference, VariableSyntax } from '../catalog/client-row.ts'
import { type ClientId, clientRow } from '../catalog/clients.ts'

export interface ClientConnection {
  readonly client: ClientId
  readonly name: string
  readonly url: string
  /** Variable in the client's environment that contains a bearer token. */
  readonly bearerVariable?: string | undefined
  /** The bridge program's command, with an absolute path. */
  readonly program?: readonly string[] | undefined
}

type Entry = Readonly<Record<string, unknown>>

/** True when the client cannot connect to a remote server directly. */
export function needsProgram(client: ClientId): boolean {
  return clientRow(client).remote === undefined
}

/** Throws INVALID_CONFIG when the client does not support the connection. */
export function connectionEntry(connection: ClientConnection): Entry {
  const { client, url, program } = connection
  const row = clientRow(client)
  if (!row.remote && !row.program) throw invalidConfig(`${row.title} cannot be changed: ${row.pickUp}`)
  checkName(connection)
  if (program) {
    const [command = '', ...args] = program
    const entry = row.program?.(command, args)
    if (!entry) throw invalidConfig(`${row.title} cannot start a program`)
    return withName(entry, connection.name)
  }
  if (!row.remote) throw invalidConfig(`${row.title} cannot connect to remote servers: use --stdio`)
  return withName(row.remote(url, bearerReference(connection)), connection.name)
}

/** Sets the name in the entry, for clients that repeat the name there. */
function withName(entry: Entry, name: string): Entry {
  return 'name' in entry ? { ...entry, name } : entry
}

function bearerReference({ client, bearerVariable }: ClientConnection): BearerReference | undefined {
  if (bearerVariable === undefined) return undefined
  if (!/^[A-Za-z_]\w*$/.test(bearerVariable)) {
    throw invalidConfig('--bearer-env: must be the name of a variable, not a token')
  }
  const { title, variables, form } = clientRow(client)
  const reference = syntaxes[variables](bearerVariable)
  if (reference === undefined && form.bearerVariable === undefined) {
    throw invalidConfig(
      `--bearer-env: ${title} does not support variables in headers: use --stdio with --bearer-file FILE`,
    )
  }
  return { variable: bearerVariable, header: reference === undefined ? undefined : `Bearer ${reference}` }
}

const syntaxes: Readonly<Record<VariableSyntax, (name: string) => string | undefined>> = {
  none: () => undefined,
  braces: (name) => `\${${name}}`,
  dollar: (name) => `\${${name}}`,
  prefixed: (name) => `\${env:${name}}`,
  'bare-braces': (name) => `{env:${name}}`,
}

/** Accepts only names that every client accepts. */
function checkName({ client, name }: ClientConnection): void {
  const { title, reservedNames = [] } = clientRow(client)
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/.test(name)) {
    throw invalidConfig(
      '--name: must be 1 to 63 letters, digits, "-" and "_", beginning with a letter or digit',
    )
  }
  if (reservedNames.includes(name)) throw invalidConfig(`--name: "${name}" is reserved by ${title}`)
}
