/** Converts a remote server and its authentication. */
import type { Fields } from '../../../../schemas/index.ts'
import { looseFields, type RunConfigParts } from './reader.ts'

export function remoteSpec(parts: RunConfigParts, remoteUrl: string): Fields {
  const { reader, draft } = parts
  const transport = reader.text('transport')
  for (const field of ['env_vars', 'secrets', 'volumes', 'cmd_args'])
    if (reader.raw(field) !== undefined) reader.ignore(field)
  const url = draftUrl(remoteUrl)
  if (url === undefined) draft.note('remote_url', 'refused', 'is not a valid URL')
  return {
    remoteUrl,
    ...((transport === 'sse' || transport === 'streamable-http') && { transport }),
    ...credentials(parts),
  }
}

function draftUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}

function credentials({ reader, name, draft, context }: RunConfigParts): Fields {
  const auth = reader.fields('remote_auth_config')
  if (!auth) return {}
  const loose = looseFields(auth)
  const token = loose.get('bearertoken')
  if (typeof token === 'string' || loose.has('bearertokenfile')) {
    const key = 'token'
    const secret = context.add('Secret', `${name}-token`, {
      type: 'Opaque',
      stringData: { [key]: typeof token === 'string' ? token : '' },
    })
    if (typeof token !== 'string')
      draft.note('remote_auth_config.bearer_token_file', 'differs', `fill in key ${key} of Secret ${secret}`)
    const spec = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: secret, key } } }
    return {
      externalAuthConfigRef: { name: context.add('MCPExternalAuthConfig', `${name}-token`, { spec }) },
    }
  }
  draft.note(
    'remote_auth_config',
    'lost',
    'a browser login belongs to one user: use gatehouse proxy --remote-auth on a machine, or an MCPExternalAuthConfig of type embeddedAuthServer in a cluster',
  )
  return {}
}

/** Converts headers for a remote server. Headers from secrets become keys in a Secret that must be filled in. */
export function headerSpec({ reader, name, draft, context }: RunConfigParts, isRemote: boolean): Fields {
  const headers = reader.fields('header_forward')
  if (!headers) return {}
  if (!isRemote) {
    draft.note('header_forward', 'lost', 'headers are added only for remote servers')
    return {}
  }
  const plain = headers['add_plaintext_headers']
  const fromSecrets = Object.entries((headers['add_headers_from_secret'] ?? {}) as Record<string, string>)
  if (fromSecrets.length === 0) return { headerForward: { addPlaintextHeaders: plain } }
  const values = Object.fromEntries(fromSecrets.map(([, key]) => [key, '']))
  const secret = context.add('Secret', `${name}-headers`, { type: 'Opaque', stringData: values })
  draft.note('header_forward.add_headers_from_secret', 'differs', `fill in the keys of Secret ${secret}`)
  const addHeadersFromSecret = fromSecrets.map(([headerName, key]) => ({
    headerName,
    valueSecretRef: { name: secret, key },
  }))
  return {
    headerForward: { ...(plain !== undefined && { addPlaintextHeaders: plain }), addHeadersFromSecret },
  }
}
