"""ACLs of a broker that has an authorizer."""

from __future__ import annotations

from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from testing.waiting import wait_until


def allowed(
    admin: AdminClient,
    operation: AclOperation,
    name: str,
    *,
    kind: ResourceType = ResourceType.TOPIC,
    principal: str = "User:ANONYMOUS",
) -> tuple[Any, ...]:
    """Allow the principal this operation, and return the rule once the broker applies it. The controller responds when
    the rule is in its log, which a broker reads a little later.
    """
    rule = (kind, name, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)
    admin.create_acls([AclBinding(*rule)])[AclBinding(*rule)].result(120)
    wait_until(lambda: bool(admin.describe_acls(AclBindingFilter(*rule)).result(120)))
    return rule
