/**
 * The files of a folder of manifests: for `gatehouse dev -f`, `gatehouse validate -f` and `kubectl apply -k` alike.
 */
import { writeYaml } from '../../../../schemas/yaml/index.ts'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Conversion } from './convert.ts'
import type { ConvertedManifest } from './secret-store.ts'

export interface FolderFile {
  readonly name: string
  readonly text: string
  /** Holds secrets: for its owner only, and never in Git. */
  readonly secret: boolean
}

const secretsManifest = 'secrets.yaml'
const secretsVariables = 'secrets.env'

/** Files in name order. Throws INVALID_CONFIG when a secret cannot stand in a file of variables. */
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
          // The references to it are in kinds that kustomize does not know, so its name must stay.
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
  const head = '# Values of the servers beside. Git ignores this file: it must stay on this machine.\n'
  return { name: secretsManifest, text: head + documents(secrets.manifests), secret: true }
}

function oneLine(key: string, value: string): string {
  if (!/[\r\n]/.test(value)) return value
  throw new GatehouseError('INVALID_CONFIG', {
    detail: `the secret ${key} has several lines, which a file of variables cannot hold: say --secrets manifest`,
  })
}

function documents(manifests: readonly ConvertedManifest[]): string {
  return manifests.map(yaml).join('---\n')
}

function yaml(document: unknown): string {
  return writeYaml(document)
}
