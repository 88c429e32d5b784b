/**
 * Resolves the tag of a container image to a digest at the image's registry, so that the manifest pins the content.
 * Responds to one token challenge, without credentials. Every address must pass the public address check.
 *
 * Source: OCI distribution specification v1.1, "Checking if content exists in the registry"; Docker registry token
 * authentication.
 */
import { createHash } from 'node:crypto'
import { fieldsOf, jsonFields } from '../../../schemas/index.ts'
import { type Fetch, makeFetch } from '../../net/index.ts'
import { EntryRejected, requestFailure } from './errors.ts'

const timeoutMs = 30_000
/** Limit that the distribution specification recommends for manifests. */
const maxManifestBytes = 4_194_304

const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ')

interface ImageName {
  readonly host: string
  readonly repository: string
  readonly tag: string
}

/** Parses `name:tag` and `host/name:tag` as container engines do. */
function parseImage(image: string): ImageName {
  const [, name = '', tag = 'latest'] = /^(.*?)(?::([\w][\w.-]*))?$/.exec(image) ?? []
  const [first = '', ...rest] = name.split('/')
  const hasHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  const host = hasHost ? first : 'docker.io'
  const path = hasHost ? rest.join('/') : name
  const isHub = host === 'docker.io' || host === 'index.docker.io'
  const repository = isHub && !path.includes('/') ? `library/${path}` : path
  return { host: isHub ? 'registry-1.docker.io' : host, repository, tag }
}

export interface DigestOptions {
  readonly offline: boolean
}

/** Throws EntryRejected when the digest cannot be found. */
export async function imageDigest(image: string, { offline }: DigestOptions): Promise<string> {
  if (offline) throw new EntryRejected(`${image}: has no digest, and --offline is set`)
  const { host, repository, tag } = parseImage(image)
  const fetch = makeFetch({ guard: 'public', timeoutMs, maxBytes: maxManifestBytes })
  const url = `https://${host}/v2/${repository}/manifests/${tag}`
  const failed = (why: string) => new EntryRejected(`${image}: cannot find the image’s digest: ${why}`)
  try {
    const headers = { accept: manifestTypes }
    let response = await fetch(url, { headers })
    if (response.status === 401) {
      const token = await tokenFor(response.headers.get('www-authenticate') ?? '', fetch)
      if (token === undefined) throw failed(`${host} requires a login`)
      response = await fetch(url, { headers: { ...headers, authorization: `Bearer ${token}` } })
    }
    if (response.status !== 200) throw failed(`${host} responded with ${response.status}`)
    const bytes = Buffer.from(await response.arrayBuffer())
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    const declared = response.headers.get('docker-content-digest')
    if (declared !== null && declared !== digest)
      throw failed('the content does not match the declared digest')
    return digest
  } catch (error) {
    if (error instanceof EntryRejected) throw error
    throw failed(requestFailure(error))
  } finally {
    await fetch.close()
  }
}

/** Returns an anonymous token for a challenge such as `Bearer realm="https://auth.example.com/token",service="x"`. */
async function tokenFor(challenge: string, fetch: Fetch): Promise<string | undefined> {
  const [, list = ''] = /^bearer\s+(.*)$/i.exec(challenge.slice(0, 4096)) ?? []
  const fields = new Map(
    [...list.matchAll(/([a-z_]+)="([^"]*)"/gi)].map(([, key = '', value = '']) => [key.toLowerCase(), value]),
  )
  const realm = URL.parse(fields.get('realm') ?? '')
  if (realm?.protocol !== 'https:') return undefined
  for (const key of ['service', 'scope']) {
    const value = fields.get(key)
    if (value !== undefined) realm.searchParams.set(key, value)
  }
  const response = await fetch(realm)
  const body = fieldsOf(jsonFields(await response.text()))
  const token = body['token'] ?? body['access_token']
  return response.status === 200 && typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)
    ? token
    : undefined
}
