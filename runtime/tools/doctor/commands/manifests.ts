/**
 * Validates manifests as the webhook does, then checks all remote backends and issuers in them. Cluster-internal names
 * are reported as skipped.
 */
import { formatViolations, isFields } from '../../../../schemas/index.ts'
import { checkManifests, nameOf } from '../../../toolkit/manifests/check.ts'
import { generatedNames, kustomizationSets } from '../../../toolkit/manifests/kustomizations.ts'
import { standardText } from '../../../toolkit/terminal/input.ts'
import { type Manifest, readManifests } from '../../../toolkit/manifests/read.ts'
import type { Examined } from './report.ts'
import { type CommonOptions, remoteTarget } from './remote.ts'
import { type Check, walk } from '../report/walk.ts'
import { failed, ok, skipped, warning } from '../report/finding.ts'
import { makeClean } from '../report/text.ts'

const maxDialed = 50

export async function* manifestTargets(
  paths: readonly string[],
  common: CommonOptions,
): AsyncGenerator<Examined> {
  const { referenceCheck, validateResource } = await import('../../../../hooks/index.ts')
  const manifests = readManifests(paths, standardText)
  const checked = checkManifests(manifests, {
    validate: validateResource,
    references: referenceCheck,
    setsOf: kustomizationSets(paths),
    generated: generatedNames(paths),
  })
  const checks = checked.map(
    ({ manifest, violations, warnings }): Check<undefined> => ({
      id: nameOf(manifest),
      hop: 'manifest',
      needs: [],
      object: () => `${manifest.file}:${manifest.lineOf(violations[0]?.path ?? '')}`,
      async run() {
        if (violations.length > 0) return failed('manifest.invalid', formatViolations(violations))
        return warnings.length > 0 ? warning('manifest.warning', warnings.join('; ')) : ok('valid')
      },
    }),
  )
  const endpoints = endpointsOf(checked.map(({ manifest }) => manifest))
  const dialed = endpoints.filter(({ url }) => !isInCluster(url)).slice(0, maxDialed)
  const skippedChecks = endpoints.filter((endpoint) => !dialed.includes(endpoint)).map(skippedEndpoint)
  const findings = await walk([...checks, ...skippedChecks], { facts: undefined, clean: makeClean([]) })
  yield { target: paths.join(', '), findings }
  for (const { url, depth } of dialed) yield await remoteTarget(url, { ...common, depth })
}

interface DialedEndpoint {
  readonly url: string
  readonly depth: 'backend' | 'issuer'
}

/** Fields that contain the URL of a backend or an issuer, anywhere in a spec. */
const fields: Readonly<Record<string, DialedEndpoint['depth']>> = {
  remoteUrl: 'backend',
  issuerUrl: 'issuer',
}

function endpointsOf(manifests: readonly Manifest[]): readonly DialedEndpoint[] {
  const found = new Map<string, DialedEndpoint>()
  const add = (url: unknown, depth: DialedEndpoint['depth']): void => {
    if (typeof url === 'string' && URL.canParse(url) && /^https?:/.test(url))
      found.set(`${depth} ${url}`, { url, depth })
  }
  for (const { doc } of manifests) {
    const spec = isFields(doc['spec']) ? doc['spec'] : {}
    // Skips the issuer of an embedded authorization server. That issuer is the gateway itself, which may not be running
    // yet.
    if (doc['kind'] === 'MCPOIDCConfig' && isFields(spec['inline'])) add(spec['inline']['issuer'], 'issuer')
    visit(spec, 0, (name, value) => {
      const depth = fields[name]
      if (depth !== undefined) add(value, depth)
    })
  }
  return [...found.values()]
}

function visit(value: unknown, depth: number, onMember: (name: string, value: unknown) => void): void {
  if (depth > 20) return
  if (Array.isArray(value)) for (const item of value) visit(item, depth + 1, onMember)
  else if (isFields(value)) {
    for (const [name, inner] of Object.entries(value)) {
      onMember(name, inner)
      visit(inner, depth + 1, onMember)
    }
  }
}

function isInCluster(url: string): boolean {
  const { hostname } = new URL(url)
  return /\.svc(?:\.cluster\.local)?$/.test(hostname) || (!hostname.includes('.') && hostname !== 'localhost')
}

function skippedEndpoint({ url }: DialedEndpoint): Check<undefined> {
  return {
    id: new URL(url).host,
    hop: 'manifest',
    needs: [],
    object: () => url,
    run: async () =>
      skipped(
        isInCluster(url)
          ? 'a host inside a cluster cannot be reached from this machine'
          : `not checked: the limit is ${maxDialed} URLs`,
      ),
  }
}
