/** Builds the files of a manifest folder for `gatehouse dev -f`, `gatehouse validate -f` and `kubectl apply -k`. */
import { writeYaml } from '../../../../schemas/yaml/index.ts'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Conversion } from './convert.ts'
import type { ConvertedManifest } from './secret-store.ts'

export interface FolderFile {
  readonly name: string
  readonly text: string
  /** The folder contains secrets, so it is readable only by its owner and ignored by Git. */
  readonly secret: boolean
}

const secretsManifest = 'secrets.yaml'
const secretsVariables = 'secrets.env'

/** Returns the files in name order. Throws INVALID_CONFIG when a secret cannot be written to a variables file. */
export function folderFiles(conversion: Conversion): readonly FolderFile[] {
  const { members, entrance, secrets } = conversion
  const open = [
    { name: 'servers.yaml', text: documents(members), secret: false },
    { name: 'virtual-server.yaml', text: documents(entrance), secret: false },
  ]
  const closed = secretFile(conversion)
  const resources = [...open, ...(closed && secrets.variables === undefined ? [closed] : [])].map(
    ({ name }) => name,
  )
  const kustomization = {
    apiVersion: 'kustomize.config.k8s.io/v1beta1',
    kind: 'Kustomization',
    resources,
    ...(secrets.variables && {
      secretGenerator: [
        {
          name: secrets.variables.secret,
          envs: [secretsVariables],
          // kustomize does not rewrite references in our kinds, so the name must not have a hash suffix.
          options: { disableNameSuffixHash: true },
        },
      ],
    }),
  }
  const files = [
    ...open,
    ...(closed ? [closed] : []),
    { name: 'kustomization.yaml', text: yaml(kustomization), secret: false },
  ]
  return files.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function secretFile({ secrets }: Conversion): FolderFile | undefined {
  if (secrets.variables) {
    const lines = [...secrets.variables.values].map(([key, value]) => `${key}=${oneLine(key, value)}\n`)
    return { name: secretsVariables, text: lines.join(''), secret: true }
  }
  if (secrets.manifests.length === 0) return undefined
  const head = '# Secrets for the servers in this folder. Git ignores this file: keep it on this machine.\n'
  return { name: secretsManifest, text: head + documents(secrets.manifests), secret: true }
}

function oneLine(key: string, value: string): string {
  if (!/[\r\n]/.test(value)) return value
  throw new GatehouseError('INVALID_CONFIG', {
    detail: `the secret ${key} spans several lines, which a variables file cannot contain: use --secrets manifest`,
  })
}

function documents(manifests: readonly ConvertedManifest[]): string {
  return manifests.map(yaml).join('---\n')
}

function yaml(document: unknown): string {
  return writeYaml(document)
}
