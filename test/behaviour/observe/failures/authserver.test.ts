/** Each of these failures is driven against a running server, and five views tell the same of it. */
import t from 'tap'
import { authServerFailures } from '../../../helpers/failures/authserver.ts'
import { tellAlike } from '../../../helpers/failures/views.ts'

tellAlike(t, authServerFailures)
