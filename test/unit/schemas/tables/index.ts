/** All tables of manifests. */
import { authServerTables } from './auth-server.ts'
import { clientAuthTables } from './client-auth.ts'
import { externalAuthTables } from './external-auth.ts'
import { otherKindTables } from './other-kinds.ts'
import { quotaTables } from './quotas.ts'
import type { Table } from './table.ts'
import { virtualServerTables } from './virtual-server.ts'
import { vmcpConfigTables } from './vmcp-config.ts'
import { workflowTables } from './workflow.ts'

export const allTables: readonly Table[] = [
  ...externalAuthTables,
  ...clientAuthTables,
  ...authServerTables,
  ...virtualServerTables,
  ...vmcpConfigTables,
  ...quotaTables,
  ...workflowTables,
  ...otherKindTables,
]
