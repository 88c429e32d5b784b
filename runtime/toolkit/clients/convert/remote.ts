/** Converts a remote server to an MCPServerEntry. All header values are stored in a Secret. */
import { apiVersion, headerValueViolation } from '../../../../schemas/index.ts'
import { isLoopbackHost } from '../../../net/index.ts'
import type { Note, EntryRemote } from '../entries/entry.ts'
import { type ManifestDraft, type ConversionContext, NotTaken } from './context.ts'
import { secretInUrl } from './secrets.ts'
import type { ConvertedManifest } from './secret-store.ts'

export function remoteDraft(remote: EntryRemote, context: ConversionContext): ManifestDraft {
  const url = new URL(context.text(remote.url, 'URL'))
  const secret = secretInUrl(url)
  const hasUser = url.username !== '' || url.password !== ''
  if (secret !== undefined && (hasUser || !context.options.keepSecretArgs)) {
    throw new NotTaken(`${secret}: send it as a header${hasUser ? '' : ', or use --keep-secret-args'}`)
  }
  if (isLoopbackHost(url.hostname) && !context.options.allowLoopback) {
    throw new NotTaken(
      'the URL refers to this machine: import the program that serves it, or use gatehouse run --url URL',
    )
  }
  const headers = [...remote.headers].map(([headerName, value]) => {
    const filled = context.filled(value, `header ${headerName}`)
    const violation = headerValueViolation(filled.filter((part) => typeof part === 'string').join(''))
    if (violation !== undefined) throw new NotTaken(`its header ${headerName} ${violation}`)
    return { headerName, valueSecretRef: context.secret(headerName.toLowerCase(), filled) }
  })
  return repairViolations(
    {
      apiVersion,
      kind: 'MCPServerEntry',
      metadata: { name: context.name, annotations: context.annotations },
      spec: {
        groupRef: { name: context.options.group },
        remoteUrl: url.href,
        transport: remote.transport,
        ...(headers.length > 0 && { headerForward: { addHeadersFromSecret: headers } }),
      },
    },
    headers,
    context,
  )
}

type Header = {
  readonly headerName: string
  readonly valueSecretRef: { readonly name: string; readonly key: string }
}

/**
 * Fixes violations where possible, and adds a note for each fix: allows a private address, and drops headers that must
 * not be forwarded.
 */
function repairViolations(
  manifest: ConvertedManifest,
  headers: readonly Header[],
  context: ConversionContext,
): ManifestDraft {
  const violations = context.options.violationsOf(manifest)
  const notes: Note[] = []
  const rejected = new Set(
    violations.flatMap(
      ({ path }) => /^spec\.headerForward\.addHeadersFromSecret\[(\d+)\]/.exec(path)?.[1] ?? [],
    ),
  )
  const kept = headers.filter((_header, index) => !rejected.has(String(index)))
  for (const [index, { headerName }] of headers.entries()) {
    if (rejected.has(String(index)))
      notes.push({ field: `header ${headerName}`, text: 'cannot be forwarded', loses: true })
  }
  context.forget(
    headers.filter((header) => !kept.includes(header)).map(({ valueSecretRef }) => valueSecretRef),
  )
  const isPrivate = violations.some(({ path }) => path === 'spec.remoteUrl')
  if (isPrivate)
    notes.push({ field: 'URL', text: 'the address is private, so allowPrivateEndpoint is set', loses: false })
  if (kept.length > 0 && String(manifest.spec?.['remoteUrl']).startsWith('http:')) {
    notes.push({ field: 'URL', text: 'is not encrypted, but its headers contain secrets', loses: false })
  }
  const { headerForward: _headers, ...spec } = manifest.spec ?? {}
  return {
    notes,
    manifest: {
      ...manifest,
      spec: {
        ...spec,
        ...(isPrivate && { allowPrivateEndpoint: true }),
        ...(kept.length > 0 && { headerForward: { addHeadersFromSecret: kept } }),
      },
    },
  }
}
