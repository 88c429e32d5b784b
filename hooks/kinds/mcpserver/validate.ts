/** Checks an MCPServer against rules that its schema cannot express. */
import type { MCPServer, Violation } from '../../../schemas/index.ts'
import { authzViolations, policyNameWarnings, primaryProviderWarnings } from '../common/checks/policies.ts'
import { issuerReferenceViolations } from '../../runtime-config/issuers.ts'
import { sizeViolations } from '../../children/size.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { mergedTemplateViolations } from '../../children/pod-template.ts'
import { serverNames } from '../../children/names.ts'
import type { CheckSettings } from '../../base/settings.ts'
import { checkContext } from '../common/check-context.ts'
import { proxyTemplate, proxyContainer } from '../common/proxy/children.ts'
import { proxyWorkload } from './build.ts'
import { generatedTemplate } from './children.ts'
import { stdioOf, hasCommand } from './stdio.ts'
import {
  imageViolations,
  proxyOverrideViolations,
  resourcesViolations,
} from '../../children/checks/spec-checks.ts'
import { tlsWarnings } from '../common/serving-tls.ts'
import { serverContainer } from './bridge.ts'

export function serverViolations(server: MCPServer, settings: CheckSettings): Violation[] {
  const { spec } = server
  return [
    ...templateViolations(server, settings),
    ...authzViolations(spec.authzConfig, 'spec.authzConfig'),
    ...issuerReferenceViolations(spec.oidcConfigRefs, 'spec.oidcConfigRefs'),
    ...sizeViolations('spec.authzConfig', 'a ConfigMap', spec.authzConfig?.inline),
    ...sizeViolations('spec.podTemplateSpec', 'a workload', spec.podTemplateSpec),
    ...environmentViolations(spec),
    ...imageViolations(spec.image, 'spec.image'),
    ...resourcesViolations(spec.resources, 'spec.resources'),
    ...metadataViolations(spec.exposure?.ingress, 'spec.exposure.ingress'),
    ...proxyOverrideViolations(spec.resourceOverrides, 'spec.resourceOverrides'),
    ...proxyTemplateViolations(server, settings),
    ...volumeViolations(spec),
  ]
}

function templateViolations(server: MCPServer, settings: CheckSettings): Violation[] {
  const generated = () => {
    const context = checkContext(server, 'MCPServer', settings)
    return generatedTemplate(context, stdioOf(context), '')
  }
  return mergedTemplateViolations({
    user: server.spec.podTemplateSpec,
    generated,
    container: serverContainer,
  })
}

function proxyTemplateViolations(server: MCPServer, settings: CheckSettings): Violation[] {
  const template = server.spec.resourceOverrides?.proxyDeployment?.podTemplateSpec
  const owner = 'spec.resourceOverrides.proxyDeployment'
  const generated = () => {
    const context = checkContext(server, 'MCPServer', settings)
    return proxyTemplate(proxyWorkload(context, stdioOf(context)))
  }
  return [
    ...mergedTemplateViolations({ user: template, generated, container: proxyContainer, owner }),
    ...sizeViolations(`${owner}.podTemplateSpec`, 'a workload', template),
  ]
}

/** Volume name prefix that the stdio bridge reserves. */
const reservedPrefix = 'gatehouse-'

function volumeViolations({ volumes = [] }: MCPServer['spec']): Violation[] {
  const seen = new Set<string>()
  return volumes.flatMap(({ name, mountPath, hostPath }, index) => {
    const violations: Violation[] = []
    const path = `spec.volumes[${index}]`
    if (name.startsWith(reservedPrefix))
      violations.push({ path: `${path}.name`, message: `must not begin with ${reservedPrefix}` })
    if (mountPath.includes(':'))
      violations.push({ path: `${path}.mountPath`, message: "must not contain ':'" })
    if (mountPath === '/gatehouse' || mountPath.startsWith('/gatehouse/'))
      violations.push({ path: `${path}.mountPath`, message: 'is reserved for the bridge of stdio servers' })
    if (seen.has(mountPath))
      violations.push({ path: `${path}.mountPath`, message: 'is already the path of another volume' })
    seen.add(mountPath)
    if (hostPath.split('/').includes('..'))
      violations.push({ path: `${path}.hostPath`, message: "must not contain '..'" })
    return violations
  })
}

/** Rejects variables with two sources, because the effective value would be unclear. */
function environmentViolations({ env = [], secrets = [] }: MCPServer['spec']): Violation[] {
  const literal = new Set(env.map(({ name }) => name))
  const violations: Violation[] = []
  const seen = new Set<string>()
  for (const [index, { key, targetEnvName }] of secrets.entries()) {
    const name = targetEnvName ?? key
    const path = `spec.secrets[${index}]${targetEnvName === undefined ? '.key' : '.targetEnvName'}`
    if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) {
      violations.push({ path, message: 'is not a valid environment variable name; set targetEnvName' })
    }
    if (literal.has(name) || seen.has(name))
      violations.push({ path, message: `the variable ${name} is set twice` })
    seen.add(name)
  }
  return violations
}

export function serverWarnings(server: MCPServer): readonly string[] {
  const { spec } = server
  const found = [
    ...primaryProviderWarnings(spec.authzConfig),
    ...policyNameWarnings(spec.authzConfig),
    ...tlsWarnings(spec, serverNames(server.metadata.name).proxy),
  ]
  // A host that cannot exist (RFC 2606). `gatehouse import` writes this host as a placeholder for an unknown image.
  if (/^[^/]+\.invalid(?::\d+)?\//.test(spec.image)) {
    found.push('the image is a placeholder that no cluster can pull; set the real image')
  }
  if (spec.transport === 'stdio' && !hasCommand(spec)) {
    found.push(
      'stdio without a command: all sessions share one process, whose messages go to the container log',
    )
  }
  if (spec.transport === 'stdio' && (spec.replicas ?? 0) > 1) {
    found.push('the stdio transport supports at most one proxy; replicas is capped at 1')
  }
  return found
}
