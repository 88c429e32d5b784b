/**
 * MCPServer: checks of the object alone that need code.
 */
import type { MCPServer, Violation } from '../../../schemas/index.ts'
import { authzViolations } from '../common/checks/policies.ts'
import { sizeViolations } from '../../children/size.ts'
import { metadataViolations } from '../../children/checks/metadata-shape.ts'
import { podTemplateViolations } from '../../children/pod-template.ts'
import { proxyContainer } from '../common/proxy/paths.ts'
import { serverContainer } from './container.ts'
import {
  imageViolations,
  proxyOverrideViolations,
  resourcesViolations,
} from '../../children/checks/spec-checks.ts'

export function serverViolations({ spec }: MCPServer): Violation[] {
  return [
    ...podTemplateViolations(spec.podTemplateSpec, [serverContainer]),
    ...authzViolations(spec.authzConfig, 'spec.authzConfig'),
    ...sizeViolations('spec.authzConfig', 'a ConfigMap', spec.authzConfig?.inline),
    ...sizeViolations('spec.podTemplateSpec', 'a workload', spec.podTemplateSpec),
    ...environmentViolations(spec),
    ...imageViolations(spec.image, 'spec.image'),
    ...resourcesViolations(spec.resources, 'spec.resources'),
    ...metadataViolations(spec.exposure?.ingress, 'spec.exposure.ingress'),
    ...proxyOverrideViolations(spec.resourceOverrides, 'spec.resourceOverrides'),
    ...proxyTemplateViolations(spec),
    ...volumeViolations(spec),
  ]
}

function proxyTemplateViolations({ resourceOverrides }: MCPServer['spec']): Violation[] {
  const template = resourceOverrides?.proxyDeployment?.podTemplateSpec
  const owner = 'spec.resourceOverrides.proxyDeployment'
  return [
    ...podTemplateViolations(template, [proxyContainer], owner),
    ...sizeViolations(`${owner}.podTemplateSpec`, 'a workload', template),
  ]
}

/** Names that begin like this belong to the bridge of a stdio server. */
const ownVolumes = 'gatehouse-'

function volumeViolations({ volumes = [] }: MCPServer['spec']): Violation[] {
  const seen = new Set<string>()
  return volumes.flatMap(({ name, mountPath, hostPath }, index) => {
    const violations: Violation[] = []
    const path = `spec.volumes[${index}]`
    if (name.startsWith(ownVolumes))
      violations.push({ path: `${path}.name`, message: `must not begin with ${ownVolumes}` })
    if (mountPath.includes(':'))
      violations.push({ path: `${path}.mountPath`, message: "must not contain ':'" })
    if (mountPath === '/gatehouse' || mountPath.startsWith('/gatehouse/'))
      violations.push({ path: `${path}.mountPath`, message: 'belongs to the bridge of stdio servers' })
    if (seen.has(mountPath))
      violations.push({ path: `${path}.mountPath`, message: 'is the path of another volume too' })
    seen.add(mountPath)
    if (hostPath.split('/').includes('..'))
      violations.push({ path: `${path}.hostPath`, message: "must not contain '..'" })
    return violations
  })
}

/** Two sources for one variable: which one wins would be a surprise. */
function environmentViolations({ env = [], secrets = [] }: MCPServer['spec']): Violation[] {
  const literal = new Set(env.map(({ name }) => name))
  const violations: Violation[] = []
  const seen = new Set<string>()
  for (const [index, { key, targetEnvName }] of secrets.entries()) {
    const name = targetEnvName ?? key
    const path = `spec.secrets[${index}]${targetEnvName === undefined ? '.key' : '.targetEnvName'}`
    if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) {
      violations.push({ path, message: 'is not the name of an environment variable; set targetEnvName' })
    }
    if (literal.has(name) || seen.has(name))
      violations.push({ path, message: `the variable ${name} is set twice` })
    seen.add(name)
  }
  return violations
}
