/**
 * Writes an image as an OCI layout, and moves it to and from a registry, without an image builder.
 *
 * Source: OCI image specification 1.1 (layout, manifest, configuration); OCI distribution specification 1.1 (push, pull).
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Image } from '../kube/node/images.ts'

const manifestType = 'application/vnd.oci.image.manifest.v1+json'

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

interface Manifest {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

interface ImageConfig {
  readonly config: {
    readonly User?: string
    readonly Env: readonly string[]
    readonly Entrypoint: readonly string[]
    readonly WorkingDir: string
  }
}

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const blobPath = (layout: string, digest: string): string => join(layout, 'blobs', digest.replace(':', '/'))

/** Writes an image with one layer into a new folder, and returns its digest. The same files produce the same digest. */
export function writeLayout(layout: string, image: Image): string {
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
  const add = (mediaType: string, bytes: Uint8Array): Descriptor => {
    const digest = digestOf(bytes)
    writeFileSync(blobPath(layout, digest), bytes)
    return { mediaType, digest, size: bytes.length }
  }
  const addJson = (mediaType: string, value: object) => add(mediaType, Buffer.from(JSON.stringify(value)))
  const fixed = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--format=gnu']
  const pack = `tar ${fixed.join(' ')} -C "$0" -cf - . | gzip -1n`
  const layer = execFileSync('sh', ['-c', pack, image.root], { maxBuffer: 2 ** 30 })
  const config = addJson('application/vnd.oci.image.config.v1+json', {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: {
      ...(image.user !== undefined && { User: `${image.user}:${image.user}` }),
      Env: Object.entries(image.env).map(([name, value]) => `${name}=${value}`),
      Entrypoint: image.entrypoint,
      WorkingDir: image.workdir,
    },
    rootfs: { type: 'layers', diff_ids: [digestOf(gunzipSync(layer))] },
  })
  const manifest = addJson(manifestType, {
    schemaVersion: 2,
    mediaType: manifestType,
    config,
    layers: [add('application/vnd.oci.image.layer.v1.tar+gzip', layer)],
  })
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }))
  return manifest.digest
}

/** Pushes the image of a layout to `host/name:tag`. */
export async function pushLayout(layout: string, host: string, name: string, tag: string): Promise<void> {
  const base = `http://${host}/v2/${name}`
  const index = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'))
  const { digest }: Descriptor = index.manifests[0]
  const body = readFileSync(blobPath(layout, digest))
  const manifest: Manifest = JSON.parse(body.toString())
  for (const blob of [manifest.config, ...manifest.layers]) {
    const opened = await send(`${base}/blobs/uploads/`, { method: 'POST' })
    const target = new URL(opened.headers.get('location') ?? '', base)
    target.searchParams.set('digest', blob.digest)
    const bytes = readFileSync(blobPath(layout, blob.digest))
    await send(target, {
      method: 'PUT',
      headers: { 'content-type': 'application/octet-stream' },
      body: bytes,
    })
  }
  await send(`${base}/manifests/${tag}`, { method: 'PUT', headers: { 'content-type': manifestType }, body })
}

/**
 * Pulls `host/name:tag`, checks the digest of each blob, and unpacks the image into the folder `root`, like a node.
 * Throws when a digest does not match.
 */
export async function pullImage(root: string, host: string, name: string, tag: string): Promise<Image> {
  const base = `http://${host}/v2/${name}`
  const response = await send(`${base}/manifests/${tag}`, { headers: { accept: manifestType } })
  const manifest = (await response.json()) as Manifest
  const read = async ({ digest }: Descriptor): Promise<Buffer> => {
    const bytes = Buffer.from(await (await send(`${base}/blobs/${digest}`)).arrayBuffer())
    if (digestOf(bytes) !== digest)
      throw new Error(`${name}: the registry returned different content for the blob ${digest}`)
    return bytes
  }
  const { config }: ImageConfig = JSON.parse((await read(manifest.config)).toString())
  mkdirSync(root, { recursive: true })
  for (const layer of manifest.layers)
    execFileSync('tar', ['-xzpf', '-', '-C', root], { input: await read(layer), maxBuffer: 2 ** 30 })
  return {
    root,
    entrypoint: config.Entrypoint,
    cmd: [],
    env: Object.fromEntries(config.Env.map((text) => text.split(/=(.*)/s).slice(0, 2))),
    user: config.User === undefined ? undefined : Number(config.User.split(':')[0]),
    workdir: config.WorkingDir,
  }
}

async function send(url: string | URL, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init)
  if (!response.ok)
    throw new Error(`${init.method ?? 'GET'} ${String(url)}: ${response.status} ${await response.text()}`)
  return response
}
