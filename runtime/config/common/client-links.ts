/**
 * Links that add a server to an MCP client with one click. A link contains only a name and a URL, never a secret: the
 * client itself logs in.
 *
 * Source: the documentation of VS Code, Cursor, Goose and LM Studio.
 */

export type LinkClient = 'cursor' | 'vscode' | 'goose' | 'lm-studio'

export interface ClientLink {
  readonly client: LinkClient
  readonly title: string
  readonly link: string
}

const titles: Readonly<Record<LinkClient, string>> = {
  cursor: 'Cursor',
  vscode: 'VS Code',
  goose: 'Goose',
  'lm-studio': 'LM Studio',
}

const builders: Readonly<Record<LinkClient, (name: string, url: string) => string>> = {
  cursor: (name, url) =>
    `cursor://anysphere.cursor-deeplink/mcp/install?${query({ name, config: base64({ url }) })}`,
  vscode: (name, url) =>
    `vscode:mcp/install?${encodeURIComponent(JSON.stringify({ name, type: 'http', url }))}`,
  goose: (name, url) => `goose://extension?${query({ type: 'streamable_http', url, id: name, name })}`,
  'lm-studio': (name, url) => `lmstudio://add_mcp?${query({ name, config: base64({ url }) })}`,
}

export function clientLink(client: LinkClient, name: string, url: string): string {
  return builders[client](name, url)
}

/** Returns the link of each client that supports links. */
export function clientLinks(name: string, url: string): readonly ClientLink[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type of the table's keys
  const clients = Object.keys(builders) as LinkClient[]
  return clients.map((client) => ({ client, title: titles[client], link: clientLink(client, name, url) }))
}

function base64(entry: object): string {
  return Buffer.from(JSON.stringify(entry)).toString('base64')
}

function query(fields: Readonly<Record<string, string>>): string {
  return new URLSearchParams(fields).toString()
}
