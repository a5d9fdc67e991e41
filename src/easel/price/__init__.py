"""What a run will take and cost: templates, profiles, runtime models, price books, the provisioner."""
