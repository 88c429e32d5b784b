/** Type `cloudSts`: temporary role credentials for the caller's identity. Requests are signed with SigV4. */
import { compileBoundedCel, GatehouseError, type Violation, type RoleMapping } from '../../schemas/index.ts'
import { type ExternalAuthModule, subjectProvider } from './module.ts'
import { definedFields } from '../base/kube.ts'

export const cloudSts: ExternalAuthModule = {
  validate: ({ cloudSts: config }) =>
    (config?.roleMappings ?? []).flatMap((mapping, index) =>
      matcherViolations(mapping, `spec.cloudSts.roleMappings[${index}].matcher`),
    ),
  secrets: () => [],
  toRuntime({ cloudSts: config }, target) {
    if (!config) return { value: undefined }
    const provider = subjectProvider(config.subjectProviderName, target)
    if (provider.failure) return provider
    const settings = definedFields({ ...config, subjectProviderName: provider.value })
    return { value: { type: 'cloud_sts', cloudSts: settings } }
  },
}

function matcherViolations({ matcher }: RoleMapping, path: string): Violation[] {
  if (matcher === undefined) return []
  try {
    compileBoundedCel(matcher)
    return []
  } catch (error) {
    return [
      { path, message: error instanceof GatehouseError ? error.message : 'is not a valid CEL expression' },
    ]
  }
}
